//! Who is at the other end of a connection, and what it says.

use super::{Happened, Master, MasterError, Standing, claims, links::Again};
use crate::{
    address::is_name,
    clock::now_ns,
    control::{self, Incoming, Socket, ToMaster, ToNode, parse},
    node::{Join, Keys, Reads},
};
use lowlat_ipc::{liveness::Life, stream::Owner};
use rustix::{
    io::Errno,
    net::{SocketFlags, UCred, accept_with, sockopt::socket_peercred},
    process::{Uid, geteuid},
};
use serde::Deserialize;
use std::os::fd::OwnedFd;

/// Connections of which nothing is known yet.
const GREETING_MAX: usize = 1100;
/// Connections that are accepted in one turn.
const ACCEPTED_MAX: usize = 256;
/// How long nobody is accepted when descriptors are short.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Keys that one node may list; more are meant by [`crate::node::Keys::All`].
const KEYS_LISTED_MAX: usize = 1 << 16;
/// How long a process may take to say who it is.
const GREETING_NS_MAX: u64 = 10_000_000_000;
/// How long one that was refused may take to hear it.
const LAST_WORD_NS_MAX: u64 = 2_000_000_000;
/// Messages of one connection in one turn.
const MESSAGES_MAX: usize = 64;
/// `Reads` messages of one node.
const READS_MAX: usize = 2048;
/// Characters of a reason, which fits a message whatever they are.
const REASON_CHARACTERS_MAX: usize = 600;
/// Characters of a name that is not valid, as far as it is shown.
const NAME_CHARACTERS_MAX: usize = 32;

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Phase {
    /// It says who it is.
    Greeting { since_ns: u64, hello: Option<(Owner, Join)> },
    /// It is that member's.
    Member(u32),
    /// It was refused, and hears why before it closes.
    Refused { since_ns: u64 },
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) phase: Phase,
    peer: UCred,
    /// The name that it said, else its process.
    name: String,
}

impl Connection {
    pub(super) fn new(socket: Socket, phase: Phase, peer: UCred) -> Self {
        Self { socket, phase, peer, name: process_name(&peer) }
    }

    /// The process at the other end.
    pub(super) fn pid(&self) -> u32 {
        pid_of(&self.peer)
    }

    /// Whether it has not joined, and may.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.phase, Phase::Greeting { .. })
    }
}

/// What every version's first message has.
#[derive(Debug, Deserialize)]
struct Head {
    message: String,
    version: Option<u64>,
    #[serde(default)]
    name: String,
}

impl Master {
    /// Takes all who wait.
    pub(super) fn accept(&mut self) -> Result<(), MasterError> {
        if now_ns() < self.accept_ns {
            return Ok(());
        }
        for _ in 0..ACCEPTED_MAX {
            let fd = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => fd,
                Err(Errno::AGAIN) => return Ok(()),
                // It has gone again.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                // Files or memory are short, in this process or on the host: whoever waits is taken later.
                Err(source @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    self.pause_accepting(source);
                    return Ok(());
                }
                Err(source) => return Err(self.socket_error("accept a node", source)),
            };
            let Ok(peer) = socket_peercred(&fd) else { continue };
            // Another user is not even greeted, so that it takes nobody's place.
            if !is_trusted(peer.uid) {
                self.turn_away(fd, &peer);
                continue;
            }
            let since_ns = now_ns();
            let phase = Phase::Greeting { since_ns, hello: None };
            self.next_connection += 1;
            self.connections.insert(self.next_connection, Connection::new(Socket::new(fd), phase, peer));
            self.make_room(self.next_connection);
        }
        Ok(())
    }

    /// Waits before it accepts again, and says so once.
    fn pause_accepting(&mut self, errno: Errno) {
        let is_new = self.accept_ns == 0;
        self.accept_ns = now_ns() + ACCEPT_PAUSE_NS;
        if is_new {
            self.strain(format!(
                "nodes cannot join: {errno}\nhint: raise the limit of open files (ulimit -n)"
            ));
        }
    }

    /// Closes connections, until there are not too many with this new one. The silent ones go first, then the new one.
    fn make_room(&mut self, id: u64) {
        let Some(pid) = self.connections.get(&id).map(Connection::pid) else { return };
        if self.is_program(pid) {
            return;
        }
        loop {
            let are_too_many =
                self.connections.values().filter(|other| other.is_greeting()).count() > GREETING_MAX;
            if !are_too_many && self.has_descriptor(false) {
                return;
            }
            // The new one is silent too, and the youngest.
            if !self.drop_silent() || !self.connections.contains_key(&id) {
                if let Some(new) = self.connections.get(&id).map(|new| new.name.clone()) {
                    self.refuse(id, &format!("{new}: too many nodes have joined\nhint: raise the limit of open files (ulimit -n)"));
                    self.connections.remove(&id);
                }
                return;
            }
        }
    }

    /// Refuses another user's process, and keeps nothing of it.
    fn turn_away(&mut self, fd: OwnedFd, peer: &UCred) {
        let (found, own) = (peer.uid.as_raw(), geteuid().as_raw());
        let reason = format!(
            "it runs as user {found}, expected the master's user {own} or root\nhint: start it as user {own}"
        );
        Socket::new(fd).send(&ToNode::Refused { reason: reason.clone() }, Vec::new()).ok();
        self.happened.push(Happened::Refused { name: process_name(peer), reason });
    }

    /// Reads what a connection says.
    pub(super) fn listen(&mut self, id: u64) {
        for _ in 0..MESSAGES_MAX {
            let Some(connection) = self.connections.get(&id) else { return };
            match connection.socket.receive() {
                Ok(Incoming::Nothing) => return,
                Ok(Incoming::Message(received)) => self.hear(id, &received.bytes),
                Ok(Incoming::Closed) => return self.closed(id, "it closed its connection"),
                Err(error) => return self.refuse(id, &error.to_string()),
            }
        }
    }

    fn hear(&mut self, id: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get(&id) else { return };
        let result = match connection.phase {
            Phase::Greeting { .. } => self.greeted(id, bytes),
            Phase::Member(number) => self.told(number, bytes),
            Phase::Refused { .. } => Ok(()),
        };
        if let Err(reason) = result {
            self.refuse(id, &reason);
        }
    }

    /// A member's message. The error is a sentence.
    fn told(&mut self, number: u32, bytes: &[u8]) -> Result<(), String> {
        match parse(bytes).map_err(|error| error.to_string())? {
            ToMaster::Mapped => self.mapped(number)?,
            ToMaster::Linked { subscriber, generation, position, sequence } => {
                self.linked(number, subscriber, generation, (position, sequence));
            }
            ToMaster::Again { writer, after, first } => self.again(writer, number, Again { after, first }),
            ToMaster::Say { text } => {
                let name = self.member(number).map_or_else(String::new, |member| member.name.clone());
                self.happened.push(Happened::Said { name, text });
            }
            ToMaster::Release { strategy } => self.release(number, strategy),
            ToMaster::Leave => self.leave(number),
            other => return Err(format!("{other:?} from a node that has joined; join once")),
        }
        Ok(())
    }

    /// A message of one who is not yet a member. The error is a sentence.
    fn greeted(&mut self, id: u64, bytes: &[u8]) -> Result<(), String> {
        let connection = self.connections.get_mut(&id).ok_or("gone")?;
        let Phase::Greeting { hello, .. } = &mut connection.phase else { return Ok(()) };
        let Some((_, join)) = hello else {
            let head: Head = parse(bytes).map_err(|error| error.to_string())?;
            connection.name = shown(&head.name).unwrap_or_else(|| connection.name.clone());
            check_version(&head)?;
            let ToMaster::Hello { pid, start_ticks, name, role, writes, wait, .. } =
                parse(bytes).map_err(|error| error.to_string())?
            else {
                return Err("the first message must be hello; use one lowlat for all processes".to_owned());
            };
            let owner = Owner { pid, start_ticks };
            check_owner(owner, &connection.peer)?;
            *hello = Some((owner, Join { name, role, writes, wait, ..Join::default() }));
            return Ok(());
        };
        match parse(bytes).map_err(|error| error.to_string())? {
            ToMaster::Claims { strategies } => claims::add(&mut join.strategies, strategies),
            ToMaster::Reads { .. } if join.reads.len() >= READS_MAX => {
                Err(format!("more than {READS_MAX} lists of streams; name fewer, or use a star"))
            }
            ToMaster::Reads { streams, .. } if !is_pattern(&streams) => {
                Err(format!("streams {streams:?}: expected a name, or the beginning of one and a star"))
            }
            ToMaster::Reads { keys: Keys::Only(keys), .. }
                if keys.len() + join.reads.iter().map(Reads::keys_listed).sum::<usize>()
                    > KEYS_LISTED_MAX =>
            {
                Err(format!("more than {KEYS_LISTED_MAX} keys\nhint: read all keys of the stream"))
            }
            ToMaster::Reads { streams, keys, overrun } => {
                join.reads.push(Reads { streams, keys, overrun });
                Ok(())
            }
            ToMaster::Ready => match hello.take() {
                Some((owner, join)) => self.admit(id, owner, &join),
                None => Ok(()),
            },
            other => Err(format!("{other:?} before ready; use one lowlat for all processes")),
        }
    }

    /// Says no, and closes once that is said.
    pub(super) fn refuse(&mut self, id: u64, reason: &str) {
        let reason: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        if let Some(connection) = self.connections.get_mut(&id) {
            self.happened.push(Happened::Refused { name: connection.name.clone(), reason: reason.clone() });
            let number = if let Phase::Member(number) = connection.phase { Some(number) } else { None };
            connection.phase = Phase::Refused { since_ns: now_ns() };
            // One that does not listen hears the close.
            connection.socket.send(&ToNode::Refused { reason: reason.clone() }, Vec::new()).ok();
            if let Some(number) = number {
                // Nothing is kept for one that never was a member.
                let is_new = self.member(number).is_some_and(|member| member.standing == Standing::Joining);
                let standing = if is_new { Standing::Left } else { Standing::Dead };
                if is_new && self.member(number).is_some_and(|member| member.epoch == 1) {
                    self.claims.forget(number);
                }
                self.bury(number, &format!("it was refused: {reason}"), standing);
            }
        }
    }

    /// Those who say nothing, and those whose last word is said.
    pub(super) fn tidy_connections(&mut self, now_ns: u64) {
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| match connection.phase {
                Phase::Greeting { since_ns, .. } => now_ns.saturating_sub(since_ns) > GREETING_NS_MAX,
                Phase::Refused { since_ns } => now_ns.saturating_sub(since_ns) > LAST_WORD_NS_MAX,
                Phase::Member(_) => false,
            })
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            if self.connections.get(&id).is_some_and(Connection::is_greeting) {
                let reason =
                    format!("it did not finish joining within {} s", GREETING_NS_MAX / 1_000_000_000);
                self.refuse(id, &reason);
            } else {
                self.connections.remove(&id);
            }
        }
    }

    /// A connection's other side is gone.
    pub(super) fn closed(&mut self, id: u64, reason: &str) {
        if let Some(Connection { phase: Phase::Member(number), .. }) = self.connections.remove(&id) {
            self.bury(number, reason, Standing::Dead);
        }
    }
}

/// Whether a text can mean streams.
fn is_pattern(streams: &str) -> bool {
    is_name(streams) || streams.strip_suffix('*').is_some_and(|start| start.is_empty() || is_name(start))
}

fn pid_of(peer: &UCred) -> u32 {
    u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or(0)
}

fn process_name(peer: &UCred) -> String {
    format!("process {}", peer.pid.as_raw_nonzero())
}

fn is_trusted(user: Uid) -> bool {
    user == geteuid() || user.is_root()
}

/// A name as it is shown to the master's user: any text may come. None if there is none.
fn shown(name: &str) -> Option<String> {
    let is_valid = is_name(name);
    let quoted = || format!("{:?}", name.chars().take(NAME_CHARACTERS_MAX).collect::<String>());
    (!name.is_empty()).then(|| if is_valid { name.to_owned() } else { quoted() })
}

fn check_version(head: &Head) -> Result<(), String> {
    if head.message != "hello" {
        return Err(format!("the first message is {:?}, and must be hello", head.message));
    }
    match head.version {
        Some(version) if version == u64::from(control::VERSION) => Ok(()),
        version => Err(format!(
            "node {} speaks version {} of the control messages, and this master {}; use one lowlat for all processes",
            shown(&head.name).unwrap_or_default(),
            version.map_or_else(|| "none".to_owned(), |version| version.to_string()),
            control::VERSION
        )),
    }
}

/// Holds what a process says of itself against what the kernel says of it.
fn check_owner(owner: Owner, peer: &UCred) -> Result<(), String> {
    let pid = pid_of(peer);
    if owner.pid != pid {
        return Err(format!(
            "it says that it is process {}, and the kernel says {pid}; run master and nodes in one pid namespace",
            owner.pid
        ));
    }
    if owner.life() == Life::Dead {
        return Err(format!(
            "process {pid} did not start at tick {}; it must say its own start time",
            owner.start_ticks
        ));
    }
    Ok(())
}
