//! Connections of nodes, and their messages.

use super::{
    Happened, Master, Standing, claims, links::ReconnectRequest, member::Member, ready::EventTag,
    socket_error,
};
use lowlat_ipc::stream::Owner;
use lowlat_node::control::NodeRow;
use lowlat_node::{
    Join, Keys, Reads, Refusal,
    address::is_name,
    clock::now_ns,
    control::{self, Peer, ReceiveOutcome, Request, Socket, ToMaster, ToNode, parse},
};
use rustix::{
    io::Errno,
    net::{SocketFlags, accept_with},
    process::geteuid,
};
use std::os::fd::{AsFd, OwnedFd};

/// Maximum number of connections that have not joined yet.
const GREETING_MAX: usize = 1100;
/// Maximum number of connections accepted per turn.
const ACCEPTED_MAX: usize = 256;
/// Pause before accepting again when descriptors are short.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;
/// Maximum number of keys that one node may list; [`Keys::All`] is for more.
const KEYS_LISTED_MAX: usize = 1 << 16;
/// Time that a process has to join.
const GREETING_NS_MAX: u64 = 10_000_000_000;
/// Time that a refused process has to read the reason.
const LAST_WORD_NS_MAX: u64 = 2_000_000_000;
/// Maximum number of messages handled per connection and turn.
const MESSAGES_MAX: usize = 64;
/// Maximum number of `Reads` messages of one node.
const READS_MAX: usize = 2048;
/// Longest reason, in characters, which fits a message whatever they are.
const REASON_CHARACTERS_MAX: usize = 600;
/// Longest part of an invalid name that is shown, in characters.
const NAME_CHARACTERS_MAX: usize = 32;

#[derive(Debug)]
pub(super) enum ConnectionPhase {
    /// It has not joined yet.
    Greeting { since_ns: u64, hello: Option<Join> },
    /// It belongs to this member.
    Member(u32),
    /// It was refused, and gets the reason before it closes.
    Refused { since_ns: u64 },
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Socket,
    pub(super) phase: ConnectionPhase,
    /// The master waits for room in its socket.
    pub(super) is_waited_for: bool,
    peer: Peer,
    /// Name of the node, or of its process before the node has given its name.
    name: String,
}

impl Connection {
    pub(super) fn new(socket: Socket, phase: ConnectionPhase, peer: Peer) -> Self {
        let name = process_name(&peer);
        Self { socket, phase, is_waited_for: false, peer, name }
    }

    /// The process at the other end.
    pub(super) fn pid(&self) -> u32 {
        self.peer.pid.unwrap_or(0)
    }

    /// True if it has not joined yet, and may.
    pub(super) fn is_greeting(&self) -> bool {
        matches!(self.phase, ConnectionPhase::Greeting { .. })
    }
}

impl Master {
    /// Accepts pending connections, a limited number per turn.
    pub(super) fn accept(&mut self) -> Result<(), Refusal> {
        if now_ns() < self.accept_ns {
            return Ok(());
        }
        for _ in 0..ACCEPTED_MAX {
            let fd = match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(fd) => fd,
                Err(Errno::AGAIN) => return Ok(()),
                // It has disconnected again.
                Err(Errno::CONNABORTED | Errno::INTR) => continue,
                // Files or memory are short, in this process or on the host: pending connections are accepted
                // later.
                Err(source @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                    self.pause_accepting(source);
                    return Ok(());
                }
                Err(source) => return Err(socket_error("accept a node", &self.options.folder)(source)),
            };
            let Ok(peer) = Peer::of(&fd) else { continue };
            // Another user is refused at once, so that it occupies no place.
            if let Err(reason) = self.check_peer(&peer) {
                self.turn_away(fd, &peer, reason);
                continue;
            }
            let since_ns = now_ns();
            let phase = ConnectionPhase::Greeting { since_ns, hello: None };
            self.next_connection += 1;
            if let Err(source) = self.ready_list.add(fd.as_fd(), EventTag::Connection(self.next_connection)) {
                // Memory of the kernel, or its limit of watches. The node sees the close.
                self.pause_accepting(source);
                return Ok(());
            }
            self.connections.insert(self.next_connection, Connection::new(Socket::new(fd), phase, peer));
            self.make_room(self.next_connection);
        }
        Ok(())
    }

    /// Pauses accepting, and reports it once.
    fn pause_accepting(&mut self, errno: Errno) {
        let is_new = self.accept_ns == 0;
        self.accept_ns = now_ns() + ACCEPT_PAUSE_NS;
        if is_new {
            let reason =
                format!("nodes cannot join: {errno}\nhint: raise the limit of open files (ulimit -n)");
            self.happened.push(Happened::Strained { reason });
        }
    }

    /// Closes connections until the new one fits. The silent ones go first, then the new one.
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

    /// Checks that a process may connect. The error is a sentence for it.
    fn check_peer(&self, peer: &Peer) -> Result<(), String> {
        let (found, own) = (peer.user, geteuid().as_raw());
        let is_member = self.options.group.is_some_and(|group| peer.groups.contains(&group));
        if !is_trusted(found) && !is_member {
            let or =
                self.options.group.map_or_else(String::new, |group| format!(" or a member of group {group}"));
            return Err(format!(
                "it runs as user {found}, expected the master's user {own} or root{or}\nhint: start it as user {own}"
            ));
        }
        peer.pid.map(|_| ()).ok_or_else(|| {
            "its process is invisible to the master, which is in another container (PID namespace)\nhint: start the master on the host, and only nodes in containers".to_owned()
        })
    }

    /// Refuses a process, and keeps no state of it.
    fn turn_away(&mut self, fd: OwnedFd, peer: &Peer, reason: String) {
        Socket::new(fd).send(&ToNode::Refused { reason: reason.clone() }, Vec::new()).ok();
        self.happened.push(Happened::Refused { name: process_name(peer), reason });
    }

    /// Reads the messages of a connection.
    pub(super) fn listen(&mut self, id: u64) {
        for _ in 0..MESSAGES_MAX {
            let Some(connection) = self.connections.get(&id) else { return };
            match connection.socket.receive() {
                Ok(ReceiveOutcome::Nothing) => return,
                Ok(ReceiveOutcome::Message(received)) => self.hear(id, &received.bytes),
                Ok(ReceiveOutcome::Closed) => return self.closed(id, "it closed its connection"),
                Err(error) => return self.refuse(id, &error.to_string()),
            }
        }
    }

    fn hear(&mut self, id: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get(&id) else { return };
        let result = match connection.phase {
            ConnectionPhase::Greeting { .. } => self.greeted(id, bytes),
            ConnectionPhase::Member(number) => self.told(number, bytes),
            ConnectionPhase::Refused { .. } => Ok(()),
        };
        if let Err(reason) = result {
            self.refuse(id, &reason);
        }
    }

    /// Handles a member's message. The error is a sentence.
    fn told(&mut self, number: u32, bytes: &[u8]) -> Result<(), String> {
        match parse(bytes).map_err(|error| error.to_string())? {
            ToMaster::Mapped => self.mapped(number)?,
            ToMaster::Linked { subscriber, generation, position, sequence } => {
                self.linked(number, subscriber, generation, (position, sequence));
            }
            ToMaster::Again { writer, after, first } => {
                self.again(writer, number, ReconnectRequest { after, first });
            }
            ToMaster::Say { text } => {
                let name = self.member(number).map_or_else(String::new, |member| member.name.clone());
                self.happened.push(Happened::Said { name, text });
            }
            ToMaster::Release { strategy } => self.release(number, strategy),
            ToMaster::Leave => self.bury(number, "it left", Standing::Left),
            other => return Err(format!("unexpected {other:?} from a node that has joined")),
        }
        Ok(())
    }

    /// Handles a message before membership. The error is a sentence.
    fn greeted(&mut self, id: u64, bytes: &[u8]) -> Result<(), String> {
        let connection = self.connections.get_mut(&id).ok_or("gone")?;
        let ConnectionPhase::Greeting { hello, .. } = &mut connection.phase else { return Ok(()) };
        let Some(join) = hello else {
            check_version(&connection.name, control::version_of(bytes))?;
            match parse(bytes).map_err(|error| error.to_string())? {
                ToMaster::Ask { request, .. } => return self.asked(id, request),
                ToMaster::Hello { name, role, writes, wait, .. } => {
                    connection.name = shown(&name).unwrap_or_else(|| connection.name.clone());
                    *hello = Some(Join::new(&name, &role).writing(writes).waiting(wait));
                }
                other => return Err(format!("the first message must be hello or ask, found {other:?}")),
            }
            return Ok(());
        };
        match parse(bytes).map_err(|error| error.to_string())? {
            ToMaster::Claims { strategies } => claims::add(&mut join.strategies, strategies),
            ToMaster::Reads { .. } if join.reads.len() >= READS_MAX => {
                Err(format!("more than {READS_MAX} lists of streams\nhint: name fewer, or use a star"))
            }
            ToMaster::Reads { streams, .. } if !is_pattern(&streams) => {
                Err(format!("streams {streams:?}: expected a name, or a prefix and a star"))
            }
            ToMaster::Reads { keys: Keys::Only(keys), .. }
                if keys.len() + join.reads.iter().map(Reads::keys_listed).sum::<usize>()
                    > KEYS_LISTED_MAX =>
            {
                Err(format!("more than {KEYS_LISTED_MAX} keys\nhint: read all keys of the stream"))
            }
            ToMaster::Reads { streams, keys, overrun } => {
                join.reads.push(Reads::new(&streams, keys).with(overrun));
                Ok(())
            }
            ToMaster::Ready => match hello.take() {
                Some(join) => {
                    let owner = Owner::of(connection.pid());
                    self.admit(id, owner, &join)
                }
                None => Ok(()),
            },
            other => Err(format!(
                "unexpected {other:?} before ready\nhint: use one lowlat version for all processes"
            )),
        }
    }

    /// Answers a request of the run's user. The error is a sentence.
    fn asked(&mut self, id: u64, request: Request) -> Result<(), String> {
        let user = self.connections.get(&id).map_or(0, |connection| connection.peer.user);
        if request != Request::List && !is_trusted(user) {
            let own = geteuid().as_raw();
            return Err(format!("only its user may do that\nhint: run the command as user {own}"));
        }
        let mut answer = Vec::new();
        match request {
            Request::List => answer.extend(self.rows(now_ns()).into_iter().map(ToNode::Listed)),
            Request::Drop { name } => {
                self.drop_node(&name).map_err(|error| error.to_string())?;
                // If the master started its process, that is restarted.
                self.kill_program(&name);
            }
            Request::Stop => self.happened.push(Happened::AskedToStop),
            Request::Halt { strategy, is_halted } => self.halt(strategy, is_halted)?,
        }
        let Some(connection) = self.connections.get_mut(&id) else { return Ok(()) };
        // It is kept until everything is sent, or it closes.
        connection.phase = ConnectionPhase::Refused { since_ns: now_ns() };
        for message in answer.iter().chain([&ToNode::Done]) {
            connection.socket.send(message, Vec::new()).ok();
        }
        self.ready_list.follow(id, connection);
        Ok(())
    }

    fn rows(&self, now_ns: u64) -> Vec<NodeRow> {
        let row = |member: &Member| {
            let figures = member.figures();
            let absent = self.absent_programs().find(|(program, ..)| program.name == member.name);
            NodeRow {
                name: member.name.clone(),
                role: member.role.clone(),
                pid: member.owner.pid,
                epoch: member.epoch,
                standing: absent.map_or(member.standing.word(), |(.., state)| state).to_owned(),
                is_there: member.is_there(),
                joined_ns: now_ns.saturating_sub(member.admitted_ns),
                published: member.published().map(|count| count.saturating_sub(member.inherited.published)),
                read: figures.read.saturating_sub(member.inherited.read),
                lost: figures.lost.saturating_sub(member.inherited.lost),
                waiting: self.links.waiting(member.number),
                silent_ns: member.silence_ns(now_ns),
            }
        };
        let unknown = self.absent_programs().filter(|(program, ..)| self.named(&program.name).is_none());
        let unknown = unknown.map(|(program, pid, state)| NodeRow {
            name: program.name.clone(),
            role: program.role.clone(),
            pid,
            standing: state.to_owned(),
            is_there: pid > 0,
            ..NodeRow::default()
        });
        self.members.iter().map(row).chain(unknown).collect()
    }

    /// Refuses a connection, and closes it once the reason is sent.
    pub(super) fn refuse(&mut self, id: u64, reason: &str) {
        let reason: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        self.happened.push(Happened::Refused { name: connection.name.clone(), reason: reason.clone() });
        let refused = ConnectionPhase::Refused { since_ns: now_ns() };
        let before = std::mem::replace(&mut connection.phase, refused);
        // A peer that does not read sees the close.
        connection.socket.send(&ToNode::Refused { reason: reason.clone() }, Vec::new()).ok();
        self.ready_list.follow(id, connection);
        let ConnectionPhase::Member(number) = before else { return };
        // No state is kept of a node that was never a member.
        let is_new = self
            .member(number)
            .is_some_and(|member| member.standing == Standing::Joining && member.epoch == 1);
        let standing = if is_new { Standing::Left } else { Standing::Dead };
        if is_new {
            self.claims.forget(number);
        }
        self.bury(number, &format!("it was refused: {reason}"), standing);
    }

    /// Closes connections that are silent, and refused ones.
    pub(super) fn tidy_connections(&mut self, now_ns: u64) {
        let late: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, connection)| match connection.phase {
                ConnectionPhase::Greeting { since_ns, .. } => {
                    now_ns.saturating_sub(since_ns) > GREETING_NS_MAX
                }
                ConnectionPhase::Refused { since_ns } => now_ns.saturating_sub(since_ns) > LAST_WORD_NS_MAX,
                ConnectionPhase::Member(_) => false,
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

    /// Handles a connection that its peer has closed.
    pub(super) fn closed(&mut self, id: u64, reason: &str) {
        if let Some(Connection { phase: ConnectionPhase::Member(number), .. }) = self.connections.remove(&id)
        {
            self.bury(number, reason, Standing::Dead);
        }
    }
}

/// True if the text is a valid pattern of streams.
fn is_pattern(streams: &str) -> bool {
    is_name(streams) || streams.strip_suffix('*').is_some_and(|start| start.is_empty() || is_name(start))
}

fn process_name(peer: &Peer) -> String {
    peer.pid.map_or_else(|| "an invisible process".to_owned(), |pid| format!("process {pid}"))
}

fn is_trusted(user: u32) -> bool {
    [0, geteuid().as_raw()].contains(&user)
}

/// A name as shown to the master's user, from any text; `None` if it is empty.
fn shown(name: &str) -> Option<String> {
    let is_valid = is_name(name);
    let quoted = || format!("{:?}", name.chars().take(NAME_CHARACTERS_MAX).collect::<String>());
    (!name.is_empty()).then(|| if is_valid { name.to_owned() } else { quoted() })
}

fn check_version(who: &str, version: Option<u32>) -> Result<(), String> {
    let ours = control::VERSION;
    let hint = "hint: use one lowlat version for all processes";
    match version {
        Some(version) if version == ours => Ok(()),
        Some(version) => Err(format!(
            "{who} uses version {version} of the control messages, this master version {ours}\n{hint}"
        )),
        None => Err(format!("the first message must be hello or ask\n{hint}")),
    }
}
