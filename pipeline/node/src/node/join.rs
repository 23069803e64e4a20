//! Joins a master.

use super::{
    Counters, Join, Keys, Node, NodeTurn, Publisher, Strategies, Wait,
    control::{map, say},
    publisher::Own,
    rehearsal::Rehearsal,
    waiting::Waiting,
};
use crate::{
    ORDERS_PREFIX, Refusal,
    address::{NAME_BYTES_MAX, is_name},
    clock::{RunClock, monotonic_ns, now_ns},
    control::{
        self, KEYS_MAX, NodeRow, Peer, ReceiveOutcome, Request, Socket, ToMaster, ToNode, WithoutMaster,
        parse,
    },
    private,
};
use lowlat_ipc::{
    fork::ForkMark,
    inbox::{Inbox, STREAMS_MAX},
    interest::Interest,
    passing::Received,
    region::Access,
    router::Router,
    stream::{Segment, Stamp, Writer},
};
use rustix::{
    io::Errno,
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    process::{Resource, geteuid, getrlimit, setrlimit},
};
use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Time limit of the whole join.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Reason why a node could not join.
#[derive(Debug, Error)]
pub enum JoinError {
    #[error(
        "invalid {what} {name:?}: expected 1 to {most} characters of a-z, A-Z, 0-9, '.', '_' and '-', not starting with '.'"
    )]
    Name {
        /// Kind of the name, such as "stream" or "role".
        what: &'static str,
        name: String,
        /// Longest name, in characters.
        most: usize,
    },
    #[error(
        "cannot reach a master at {path}: {source}\nhint: start one, or name the socket of a running one"
    )]
    Unreachable { path: String, source: Errno },
    /// The master refused the node.
    #[error("cannot join the master at {path}: it refuses node {name}: {reason}")]
    Refused { path: String, name: String, reason: String },
    /// The master did not answer.
    #[error(
        "cannot join the master at {path}: it did not {what} within {} ms\nhint: check whether the master or a publisher hangs",
        within.as_millis()
    )]
    Silent {
        path: String,
        /// The step that took too long.
        what: &'static str,
        within: Duration,
    },
    /// The master closed the connection.
    #[error("cannot join the master at {path}: it closed the connection\nhint: check its log")]
    Closed { path: String },
    /// The master's answer is invalid.
    #[error(
        "cannot use the answer of the master at {path}: {reason}\nhint: use one lowlat version for all processes"
    )]
    Unusable { path: String, reason: String },
    /// Something else that its words explain.
    #[error(transparent)]
    Other(#[from] Refusal),
}

pub(super) fn join_within(path: &Path, join: &Join, within: Duration) -> Result<Node, JoinError> {
    check(join)?;
    raise_open_files();
    let mark = ForkMark::new().map_err(|error| {
        Refusal::new(format!(
            "cannot mark this process as the node's owner: {error}\nhint: use Linux 4.14 or later"
        ))
    })?;
    let mark = Arc::new(mark);
    let mut socket = connect(path)?;
    let hello = ToMaster::Hello {
        version: control::VERSION,
        name: join.name.clone(),
        role: join.role.clone(),
        writes: join.writes.clone(),
        wait: join.wait,
    };
    say(&mut socket, &hello)?;
    let claim = |strategies| ToMaster::Claims { strategies };
    match &join.strategies {
        Strategies::None => {}
        Strategies::Free => say(&mut socket, &claim(Strategies::Free))?,
        Strategies::Only(numbers) => {
            for part in numbers.chunks(KEYS_MAX) {
                say(&mut socket, &claim(Strategies::Only(part.to_vec())))?;
            }
        }
    }
    for reads in &join.reads {
        let overrun = reads.overrun;
        let tell = |keys| ToMaster::Reads { streams: reads.streams.clone(), keys, overrun };
        match &reads.keys {
            Keys::All | Keys::Own | Keys::Strategies => say(&mut socket, &tell(reads.keys.clone()))?,
            Keys::Only(keys) => {
                if keys.is_empty() {
                    say(&mut socket, &tell(Keys::Only(Vec::new())))?;
                }
                for part in keys.chunks(KEYS_MAX) {
                    say(&mut socket, &tell(Keys::Only(part.to_vec())))?;
                }
            }
        }
    }
    say(&mut socket, &ToMaster::Ready)?;
    let mut talk = JoinDialog::new(path, &join.name, within);
    let (message, memory) = talk.next(&mut socket, "answer")?;
    let ToNode::Welcome { number, epoch, without_master, markers, .. } = message else {
        return Err(talk.unusable("another message before a welcome".to_owned()));
    };
    let mut socket = Some(socket);
    let welcome = talk.welcome(&mut socket, join, mark, memory, (number, epoch, markers), without_master);
    let mut node = welcome.map_err(|reason| talk.failed(socket.as_mut(), reason))?;
    if let Err(error) = talk.connect_publishers(&mut node) {
        node.must_be_stopped();
        return Err(error);
    }
    node.beat(monotonic_ns());
    Ok(node)
}

/// Asks the master at this socket something for its run's user. Returns the nodes of a list.
pub fn ask(path: &Path, request: Request) -> Result<Vec<NodeRow>, JoinError> {
    let mut socket = connect(path)?;
    say(&mut socket, &ToMaster::Ask { version: control::VERSION, request })?;
    let mut talk = JoinDialog::new(path, "", ANSWER_MAX);
    let mut rows = Vec::new();
    loop {
        match talk.next(&mut socket, "answer") {
            Ok((ToNode::Listed(row), _)) => rows.push(row),
            Ok((ToNode::Done, _)) => return Ok(rows),
            Ok(_) => return Err(talk.unusable("a message that answers nothing".to_owned())),
            Err(JoinError::Refused { path, reason, .. }) => {
                return Err(Refusal::new(format!("the master at {path} refuses: {reason}")).into());
            }
            Err(error) => return Err(error),
        }
    }
}

fn check(join: &Join) -> Result<(), JoinError> {
    let stream = join.writes.iter().map(|writes| ("stream", writes.stream.as_str()));
    let reads = join.reads.iter().map(|reads| {
        let name = reads.streams.as_str();
        // "*" alone matches every stream.
        ("streams", name.strip_suffix('*').map_or(name, |start| if start.is_empty() { "all" } else { start }))
    });
    let names = [("node", join.name.as_str()), ("role", join.role.as_str())];
    let mut wrong = names.into_iter().chain(stream).chain(reads).filter(|(_, name)| !is_name(name));
    let Some((what, name)) = wrong.next() else { return Ok(()) };
    // The stream of a strategy has its node's name, which is what its program gave.
    let own = name.strip_prefix(ORDERS_PREFIX).filter(|own| what == "stream" && *own == join.name);
    let most = NAME_BYTES_MAX - if own.is_some() { ORDERS_PREFIX.len() } else { 0 };
    let (what, name) = own.map_or((what, name), |own| ("name of a strategy's node", own));
    Err(JoinError::Name { what, name: name.to_owned(), most })
}

/// A node needs a descriptor per piece of memory, and the default soft limit is too low for that.
pub fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, the limit stays; mapping reports an error if it is too low.
    setrlimit(Resource::Nofile, limit).ok();
}

fn connect(path: &Path) -> Result<Socket, JoinError> {
    let unreachable = |source| JoinError::Unreachable { path: path.display().to_string(), source };
    let member = match private::check_socket(path) {
        // Reported below, as the error of a missing master.
        Err(error) if error.is_absent() => None,
        checked => checked?,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd =
        net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).map_err(unreachable)?;
    let address = SocketAddrUnix::new(path).map_err(unreachable)?;
    let start = Instant::now();
    loop {
        match net::connect(&fd, &address) {
            Ok(()) => {
                check_master(path, &fd, member)?;
                return Ok(Socket::new(fd));
            }
            // Many nodes join at once, and the master has not accepted all.
            Err(Errno::AGAIN | Errno::INTR) if start.elapsed() < ANSWER_MAX => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(errno) => return Err(unreachable(errno)),
        }
    }
}

/// Checks which user's master listens, according to the kernel: its memory is mapped, and orders go through it.
/// Neither the folder nor the master's own word is sufficient.
///
/// `member` is the user who shares the run with a group that this process trusts.
fn check_master(path: &Path, fd: &OwnedFd, member: Option<u32>) -> Result<(), Refusal> {
    let own = geteuid().as_raw();
    let master = Peer::of(fd).map_err(|error| private::refused(path, "check", error))?.user;
    if [0, own].contains(&master) || member == Some(master) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "cannot join the master at {}: it runs as user {master}, expected user {own} or root\nhint: run this program as user {master} if you trust that user's run",
        path.display()
    )))
}

/// The master, the node and the deadline of a join.
#[derive(Debug)]
struct JoinDialog<'a> {
    path: &'a Path,
    name: &'a str,
    within: Duration,
    until_ns: u64,
}

impl<'a> JoinDialog<'a> {
    fn new(path: &'a Path, name: &'a str, within: Duration) -> Self {
        let until_ns = monotonic_ns().saturating_add(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        Self { path, name, within, until_ns }
    }

    fn path(&self) -> String {
        self.path.display().to_string()
    }

    fn unusable(&self, reason: String) -> JoinError {
        JoinError::Unusable { path: self.path(), reason }
    }

    /// Returns the error that ended the join: the master's refusal if there is one, because its earlier messages are
    /// then useless, else the given reason.
    fn failed(&mut self, socket: Option<&mut Socket>, reason: String) -> JoinError {
        self.until_ns = 0;
        let Some(socket) = socket else { return self.unusable(reason) };
        loop {
            match self.next(socket, "answer") {
                Ok(_) => {}
                Err(error @ JoinError::Refused { .. }) => return error,
                Err(_) => return self.unusable(reason),
            }
        }
    }

    fn next(&mut self, socket: &mut Socket, what: &'static str) -> Result<(ToNode, Vec<OwnedFd>), JoinError> {
        match socket.receive_until(self.until_ns)? {
            ReceiveOutcome::Nothing => {
                Err(JoinError::Silent { path: self.path(), what, within: self.within })
            }
            ReceiveOutcome::Closed => Err(JoinError::Closed { path: self.path() }),
            ReceiveOutcome::Message(Received { bytes, descriptors }) => match parse(&bytes)? {
                ToNode::Refused { reason } => {
                    Err(JoinError::Refused { path: self.path(), name: self.name.to_owned(), reason })
                }
                message => Ok((message, descriptors)),
            },
        }
    }

    fn connect_publishers(&mut self, node: &mut Node) -> Result<(), JoinError> {
        say(&mut node.socket, &ToMaster::Mapped)?;
        loop {
            #[cfg(feature = "testing")]
            crate::testing::step();
            let (message, memory) = self.next(&mut node.socket, "connect the publishers")?;
            if message == ToNode::Joined {
                return Ok(());
            }
            node.link(message, memory).map_err(|reason| self.failed(Some(&mut node.socket), reason))?;
        }
    }

    fn welcome(
        &self,
        socket: &mut Option<Socket>,
        join: &Join,
        mark: Arc<ForkMark>,
        memory: Vec<OwnedFd>,
        (number, epoch, markers): (u32, u64, u64),
        without_master: WithoutMaster,
    ) -> Result<Node, String> {
        let mut memory = memory.into_iter();
        let mut map = |access| map(memory.next().ok_or("a welcome without its memory")?, access);
        let inbox_memory = map(Access::Write)?;
        let inbox = Inbox::new(Arc::clone(&inbox_memory)).ok_or("an inbox that is too small")?;
        let counters = Counters::new(map(Access::Write)?);
        let master = map(Access::Read)?;
        let clock = RunClock::of(&master);
        RunClock::adopt(clock.as_ref());
        // Nodes of a stepped run that spun would take time from the one whose turn it is.
        let is_stepped = clock.as_ref().is_some_and(RunClock::is_stepped);
        let wait = if is_stepped { Wait::Parked } else { join.wait };
        let turn =
            (is_stepped && NodeTurn::is_for(join.writes.is_some(), &join.reads)).then(|| counters.turn());
        let own = if join.writes.is_some() {
            let segment = Segment::open(map(Access::Write)?).map_err(|error| error.to_string())?;
            let interest = Interest::open(map(Access::Read)?).ok_or("an invalid interest table")?;
            let mut writer = Writer::new(segment);
            if epoch > 1 {
                // Whatever the predecessor left incomplete is not a record.
                let generated = now_ns();
                let stamp = Stamp { source: number, generated, trigger: generated, ..Stamp::default() };
                writer.publish_abandoned(&stamp).map_err(|error| error.to_string())?;
                #[cfg(feature = "testing")]
                crate::testing::step();
            }
            let markers = markers + u64::from(epoch > 1);
            Some(Box::new(Own { writer, router: Router::new(interest), markers }))
        } else {
            None
        };
        Ok(Node {
            number,
            epoch,
            name: self.name.to_owned(),
            socket: socket.take().ok_or("no connection")?,
            inbox,
            inbox_memory,
            ready: None,
            publisher: Publisher::new(own, counters.clone(), Arc::clone(&mark)),
            counters,
            incoming: Vec::new(),
            pending: [0; STREAMS_MAX as usize / 64],
            direct: 0,
            followed: 0,
            reads: join.reads.clone(),
            takes_all: false,
            rehearsal: if wait == Wait::Fast { Rehearsal::new(mark) } else { None },
            payload: Vec::new(),
            waiting: Waiting::new(wait),
            areas: BTreeMap::new(),
            strategies: Vec::new(),
            turns: BTreeMap::new(),
            master,
            clock,
            turn,
            idle_polls: 0,
            by_name: Vec::new(),
            without_master,
            has_master: true,
            end: None,
            is_told: false,
            polls: 0,
            drop: super::OnDrop::Leave,
        })
    }
}
