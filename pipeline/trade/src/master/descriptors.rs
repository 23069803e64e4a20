//! Limits the master's open files, so that nodes cannot exhaust them.

use super::{
    Master,
    connection::{Connection, ConnectionPhase},
};
use rustix::process::{Resource, getrlimit};

/// Files that the master needs in any case: standard ones, the listener, the lock, logs of programs while they
/// start.
const OWN: u64 = 16;
/// Largest number of its files that it reserves to restart programs.
const PROGRAMS_MAX: u64 = 256;
/// Largest part of its files that it reserves.
const PROGRAMS_PART: u64 = 4;

impl Master {
    /// Files available to nodes; fewer for those that the master did not start.
    fn descriptors_max(is_program: bool) -> u64 {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let kept = if is_program { 0 } else { PROGRAMS_MAX.min(limit / PROGRAMS_PART) };
        limit.saturating_sub(OWN + kept)
    }

    /// Files that are open for nodes, other than memory.
    fn descriptors_of_nodes(&self) -> u64 {
        let processes = self.members.iter().filter(|member| member.pidfd.is_some()).count();
        let count = processes + self.connections.len() + self.programs.len();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// True if one more connection leaves enough files for existing nodes.
    pub(super) fn has_descriptor(&mut self, is_program: bool) -> bool {
        let pieces = u64::try_from(self.maker.pieces()).unwrap_or(u64::MAX);
        self.descriptors_of_nodes().saturating_add(pieces) < Self::descriptors_max(is_program)
    }

    /// Limits further memory to the remaining files.
    pub(super) fn limit_pieces(&mut self, is_program: bool) {
        let left = Self::descriptors_max(is_program).saturating_sub(self.descriptors_of_nodes());
        self.maker.pieces_max = usize::try_from(left).unwrap_or(usize::MAX);
    }

    /// Closes the connection that has been silent for longest; returns false if there is none. The master's own
    /// programs are exempt: on a busy host they take time between connecting and their first message.
    pub(super) fn drop_silent(&mut self) -> bool {
        let silent = self.connections.iter().filter_map(|(id, connection)| match connection.phase {
            ConnectionPhase::Greeting { since_ns, hello: None } | ConnectionPhase::Refused { since_ns }
                if !self.is_program(connection.pid()) =>
            {
                Some((since_ns, *id))
            }
            _ => None,
        });
        let Some((_, id)) = silent.min() else { return false };
        if self.connections.get(&id).is_some_and(Connection::is_greeting) {
            self.refuse(id, "it was silent while others were waiting\nhint: join again");
        }
        self.connections.remove(&id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::master::{Options, Program};
    use lowlat_node::{
        address::RunFolder,
        control::{Peer, Socket},
    };
    use rustix::{
        net::{AddressFamily, SocketFlags, SocketType, socketpair},
        process::getuid,
    };

    #[test]
    fn a_silent_program_of_the_master_stays_connected() {
        let folder = tempfile::tempdir().unwrap();
        let mut master =
            Master::open(Options::new(RunFolder::at(&folder.path().join("run")).unwrap())).unwrap();
        let sleep = Program {
            name: "md".to_owned(),
            program: "/bin/sleep".into(),
            arguments: vec!["60".to_owned()],
            ..Program::default()
        };
        let program = master.start(sleep).unwrap();
        // The program has been silent for longer.
        let mut others = Vec::new();
        for (since_ns, pid) in [(1, program), (2, std::process::id())] {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (fd, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            let peer = Peer { pid: Some(pid), user: getuid().as_raw(), groups: Vec::new() };
            let phase = ConnectionPhase::Greeting { since_ns, hello: None };
            master.connections.insert(since_ns, Connection::new(Socket::new(fd), phase, peer));
            others.push(other);
        }
        assert!(master.drop_silent());
        assert_eq!(master.connections.keys().collect::<Vec<_>>(), [&1], "the program's is left");
        assert!(!master.drop_silent());
        assert_eq!(master.connections.len(), 1);
    }
}
