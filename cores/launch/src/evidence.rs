//! Evidence that a running command is accelerated: preloading alone does not prove it.
//!
//! Onload serves a socket through the kernel without a word, for example when the driver accepts a registration and
//! refuses the bind. So the sockets that carry traffic are judged: those of the command, and of all its descendants.

use crate::{Accelerator, SocketScope};
use std::{
    collections::BTreeSet,
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

/// State of a listening TCP socket in the kernel's tables (include/net/tcp_states.h).
const LISTEN: u8 = 10;

/// Both ends of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketEnds {
    pub local: SocketAddr,
    /// Unspecified while it is not connected.
    pub remote: SocketAddr,
}

impl SocketEnds {
    /// True if it can only reach this host. Accelerators leave such sockets to the kernel.
    fn is_loopback(&self) -> bool {
        [self.local, self.remote].iter().any(|end| end.ip().to_canonical().is_loopback())
    }

    fn is_connected(&self) -> bool {
        self.remote.port() != 0
    }
}

impl fmt::Display for SocketEnds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.local)?;
        if self.is_connected() { write!(f, " to {}", self.remote) } else { Ok(()) }
    }
}

/// Socket of a process in the kernel's tables (/proc/PID/net/tcp and its relatives).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSocket {
    /// Protocol, such as "tcp" or "udp6".
    pub protocol: &'static str,
    pub ends: SocketEnds,
    /// State as the table has it: 1 for a connected socket, 10 for a listening one.
    pub state: u8,
}

/// Socket of Onload, by the name of the open file: `onload:[tcp:1:2]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OnloadSocket {
    /// Number of its stack.
    pub stack: u32,
    /// Number in the stack.
    pub id: u32,
}

impl OnloadSocket {
    /// Parses the target of a link in /proc/PID/fd. Stacks and pipes are not sockets, and listening sockets carry nothing.
    pub fn parse(file: &str) -> Option<Self> {
        // A release without a name of its own for the file system shows a folder before it.
        let (_, name) = file.rsplit_once("onload:[")?;
        let mut parts = name.strip_suffix(']')?.split(':');
        let is_socket = matches!(parts.next()?, "tcp" | "udp" | "os_sock" | "moved");
        let (stack, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (is_socket && parts.next().is_none()).then_some(Self { stack, id })
    }
}

impl fmt::Display for OnloadSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stack, self.id)
    }
}

/// Socket of Onload as `onload_stackdump STACK:SOCKET dump` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedSocket {
    pub socket: OnloadSocket,
    pub ends: SocketEnds,
    /// True if Onload sent or received something on it, or has connected it.
    pub is_carried: bool,
    /// True if the kernel sent or received datagrams for it.
    pub is_through_kernel: bool,
}

/// Parses the output of `onload_stackdump`. Lines of other releases that are not understood are left out.
pub fn dumped_sockets(dump: &str) -> Vec<DumpedSocket> {
    /// States of a connection that has carried packets in both directions.
    const CONNECTED: [&str; 6] =
        ["ESTABLISHED", "CLOSE-WAIT", "LAST-ACK", "FIN-WAIT1", "FIN-WAIT2", "CLOSING"];
    let head = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let protocol = words.next().filter(|word| matches!(*word, "TCP" | "UDP"))?;
        let (stack, id) = words.next()?.split_once(':')?;
        let ends = SocketEnds {
            local: end(words.next()?.strip_prefix("lcl=")?)?,
            remote: end(words.next()?.strip_prefix("rmt=")?)?,
        };
        let is_carried = protocol == "TCP" && CONNECTED.contains(&words.next()?);
        let socket = OnloadSocket { stack: stack.parse().ok()?, id: id.parse().ok()? };
        Some((protocol == "UDP", DumpedSocket { socket, ends, is_carried, is_through_kernel: false }))
    };
    let mut found: Vec<(bool, DumpedSocket)> = Vec::new();
    for line in dump.lines() {
        if let Some(start) = head(line) {
            found.push(start);
        } else if let Some((true, socket)) = found.last_mut()
            && let Some((direction, _)) = line.trim_start().split_once(": ")
            && matches!(direction, "snd" | "rcv")
        {
            // "snd: q=0+0 ul=12 os=0(0%)", "rcv: q_pkts=0 reap=0 tot_pkts=7", "rcv: os=3(1%) os_slow=0 os_error=0"
            let counts = |name: &str| {
                let mut values = line.split_ascii_whitespace().filter_map(|word| word.strip_prefix(name));
                values.any(|value| value.starts_with(|digit: char| digit.is_ascii_digit() && digit != '0'))
            };
            socket.is_carried |= counts("ul=") || counts("tot_pkts=");
            socket.is_through_kernel |= counts("os=");
        }
    }
    found.into_iter().map(|(_, socket)| socket).collect()
}

/// Parses `10.0.0.1:80` and `[fd00::1]:80`, also without brackets.
fn end(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let ip: IpAddr = match ip.trim_matches(['[', ']']) {
        "*" | "" => Ipv4Addr::UNSPECIFIED.into(),
        ip => ip.parse().ok()?,
    };
    Some(SocketAddr::new(ip.to_canonical(), port.parse().unwrap_or(0)))
}

/// The accelerator's library in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// The process has ended, may not be read, or is still the launcher.
    Unknown,
    Mapped,
    /// Missing in a program that the loader starts.
    Missing,
    /// Missing in a program without a loader, to which nothing can be preloaded.
    Static,
}

/// Observations of one process of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEvidence {
    /// Its name, at most 15 bytes.
    pub name: String,
    pub library: Library,
    /// True if this is the command itself and not a descendant.
    pub is_first: bool,
    /// True if it may not be looked into.
    pub is_denied: bool,
    /// Internet sockets that the kernel serves.
    pub kernel_sockets: Vec<KernelSocket>,
    /// Sockets of Onload.
    pub onload_sockets: Vec<OnloadSocket>,
    /// Open device of VMA or XLIO, such as /dev/infiniband/uverbs0.
    pub device: Option<String>,
}

/// Finding about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acceleration {
    /// No socket in scope was seen: none lived long enough, or there were only loopback ones.
    NotSeen,
    /// The library is not in the memory of this program, for this reason.
    NoLibrary(String, Library),
    /// The accelerator has sockets or its device, and what they carried is not known for these reasons.
    Unproven(Vec<String>),
    /// The kernel serves these sockets.
    InKernel(Vec<String>),
    /// This many of the accelerator's sockets carried traffic, and no socket was the kernel's.
    Accelerated(usize),
}

/// What was seen since the command started.
#[derive(Debug, Default)]
pub struct Proof {
    scope: SocketScope,
    in_kernel: BTreeSet<String>,
    carried: BTreeSet<(OnloadSocket, SocketEnds)>,
    unproven: BTreeSet<String>,
    missing: Option<(String, Library)>,
    has_library: bool,
}

impl Proof {
    pub fn new(scope: SocketScope) -> Self {
        Self { scope, ..Self::default() }
    }

    /// Adds what a process shows.
    ///
    /// VMA and XLIO keep a socket in the kernel beside each one of theirs, which is not connected there. Of datagrams the
    /// kernel's tables do not tell who carries them.
    pub fn add(&mut self, accelerator: &Accelerator, process: &ProcessEvidence) {
        let name = &process.name;
        match process.library {
            Library::Mapped => self.has_library = true,
            Library::Missing | Library::Static if process.is_first => {
                self.missing.get_or_insert((name.clone(), process.library));
            }
            _ => {}
        }
        if process.is_denied {
            self.unproven.insert(format!("cannot read the open files of {name}: permission denied"));
        }
        if let Some(device) = &process.device {
            self.unproven.insert(format!("{name} has opened {device}, and what it carries is not known"));
        }
        let is_kernels = |socket: &&KernelSocket| match accelerator {
            _ if socket.ends.is_loopback() || !self.scope.contains(&socket.ends) => false,
            Accelerator::Onload(_) => true,
            Accelerator::Vma | Accelerator::Xlio => {
                socket.protocol.starts_with("tcp") && socket.state != LISTEN || process.device.is_none()
            }
        };
        let sockets = process.kernel_sockets.iter().filter(is_kernels);
        self.in_kernel.extend(sockets.map(|socket| format!("{} {} of {name}", socket.protocol, socket.ends)));
    }

    /// Adds the account that Onload gives of its sockets.
    pub fn add_dumped(&mut self, sockets: &[DumpedSocket]) {
        let is_in_scope =
            |socket: &&DumpedSocket| !socket.ends.is_loopback() && self.scope.contains(&socket.ends);
        for socket in sockets.iter().filter(is_in_scope) {
            // A socket that is not connected may get datagrams over loopback too.
            if socket.is_through_kernel && (socket.ends.is_connected() || !socket.is_carried) {
                self.in_kernel.insert(format!("udp {} (Onload's socket {})", socket.ends, socket.socket));
            } else if socket.is_carried {
                self.carried.insert((socket.socket, socket.ends));
            }
        }
    }

    /// Adds a reason why sockets of Onload are not known.
    pub fn add_unproven(&mut self, why: &str) {
        self.unproven.insert(why.to_owned());
    }

    /// True if this socket is known to be accelerated.
    pub fn has_carried(&self, socket: OnloadSocket) -> bool {
        self.carried.iter().any(|(carried, _)| *carried == socket)
    }

    pub fn verdict(&self) -> Acceleration {
        if !self.in_kernel.is_empty() {
            return Acceleration::InKernel(self.in_kernel.iter().cloned().collect());
        }
        match &self.missing {
            _ if !self.carried.is_empty() => Acceleration::Accelerated(self.carried.len()),
            Some((name, library)) if !self.has_library => Acceleration::NoLibrary(name.clone(), *library),
            _ if !self.unproven.is_empty() => Acceleration::Unproven(self.unproven.iter().cloned().collect()),
            _ => Acceleration::NotSeen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(local: &str, remote: &str) -> SocketEnds {
        SocketEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() }
    }

    fn socket(protocol: &'static str, state: u8, remote: &str) -> KernelSocket {
        let local = if remote.starts_with("127") { "127.0.0.1:4000" } else { "10.0.0.1:4000" };
        KernelSocket { protocol, ends: ends(local, remote), state }
    }

    fn process(kernel_sockets: Vec<KernelSocket>) -> ProcessEvidence {
        ProcessEvidence {
            name: "md".into(),
            library: Library::Mapped,
            is_first: true,
            is_denied: false,
            kernel_sockets,
            onload_sockets: Vec::new(),
            device: None,
        }
    }

    fn verdict(accelerator: &Accelerator, scope: &str, processes: &[ProcessEvidence]) -> Acceleration {
        let mut proof = Proof::new(SocketScope::parse(scope, |_| None).unwrap());
        for process in processes {
            proof.add(accelerator, process);
        }
        proof.verdict()
    }

    #[test]
    fn only_a_socket_that_carries_traffic_is_accelerated() {
        let onload = Accelerator::Onload("latency".into());
        let loopback = process(vec![socket("tcp", 1, "127.0.0.1:5000")]);
        assert_eq!(verdict(&onload, "", &[]), Acceleration::NotSeen);
        assert_eq!(verdict(&onload, "", &[loopback]), Acceleration::NotSeen, "never accelerated");
        // A child's socket counts, and a scope leaves out a log socket.
        let mut child = process(vec![socket("udp", 7, "10.0.0.2:514")]);
        child.is_first = false;
        let in_kernel = Acceleration::InKernel(vec!["udp 10.0.0.1:4000 to 10.0.0.2:514 of md".into()]);
        assert_eq!(verdict(&onload, "", &[process(vec![]), child.clone()]), in_kernel);
        assert_eq!(verdict(&onload, "514", &[child.clone()]), in_kernel);
        assert_eq!(verdict(&onload, "515,10.1.0.0/16", &[child]), Acceleration::NotSeen);

        let mut proof = Proof::default();
        let idle = "TCP 1:2 lcl=10.0.0.1:4000 rmt=0.0.0.0:0 CLOSED\n";
        proof.add_dumped(&dumped_sockets(idle));
        assert_eq!(proof.verdict(), Acceleration::NotSeen, "not connected");
        let carried = "TCP 1:2 lcl=10.0.0.1:4000 rmt=10.0.0.2:5000 ESTABLISHED\n";
        proof.add_dumped(&dumped_sockets(carried));
        assert_eq!(proof.verdict(), Acceleration::Accelerated(1));
        proof.add(&onload, &process(vec![socket("tcp", 1, "10.0.0.3:5000")]));
        assert!(matches!(proof.verdict(), Acceleration::InKernel(_)), "both are seen");
    }

    #[test]
    fn a_missing_library_is_the_command_s_own() {
        let onload = Accelerator::Onload("latency".into());
        let mut without = process(Vec::new());
        without.library = Library::Static;
        let missing = Acceleration::NoLibrary("md".into(), Library::Static);
        assert_eq!(verdict(&onload, "", &[without.clone()]), missing);
        without.is_first = false;
        assert_eq!(verdict(&onload, "", &[process(Vec::new()), without]), Acceleration::NotSeen);
        let mut denied = process(Vec::new());
        denied.is_denied = true;
        assert!(matches!(verdict(&onload, "", &[denied]), Acceleration::Unproven(_)));
    }

    #[test]
    fn vma_keeps_unconnected_sockets_in_the_kernel() {
        let mut shadow = process(vec![socket("udp", 7, "0.0.0.0:0"), socket("tcp", LISTEN, "0.0.0.0:0")]);
        assert!(matches!(verdict(&Accelerator::Vma, "", &[shadow.clone()]), Acceleration::InKernel(_)));
        shadow.device = Some("/dev/infiniband/uverbs0".into());
        assert!(matches!(verdict(&Accelerator::Xlio, "", &[shadow.clone()]), Acceleration::Unproven(_)));
        shadow.kernel_sockets.push(socket("tcp", 1, "10.0.0.2:5000"));
        let in_kernel = Acceleration::InKernel(vec!["tcp 10.0.0.1:4000 to 10.0.0.2:5000 of md".into()]);
        assert_eq!(verdict(&Accelerator::Vma, "", &[shadow]), in_kernel, "not offloaded beside the device");
    }

    #[test]
    fn files_of_onload_are_its_sockets() {
        let parsed = |file| OnloadSocket::parse(file).map(|socket| socket.to_string());
        assert_eq!(parsed("onload:[tcp:1:2]").as_deref(), Some("1:2"));
        assert_eq!(parsed("/onload:[udp:0:31]").as_deref(), Some("0:31"));
        for other in
            ["onload:[tcpl:1:2]", "onload:[stack:1]", "onload:[piper:1:2]", "onload:[tcp:1]", "socket:[4242]"]
        {
            assert_eq!(parsed(other), None, "{other}");
        }
    }

    #[test]
    fn datagrams_tell_who_carried_them() {
        let dump = |remote: &str, ul: u32, os: u32, received: u32| {
            let dump = format!(
                "UDP 0:3 lcl=10.0.0.1:4000 rmt={remote} UDP\n  lock: 10000000 UNLOCKED\n  rcv: q_pkts=0 reap=2 tot_pkts={received}\n  \
                 rcv: oflow_drop=0(0%) mem_drop=0 eagain=9 pktinfo=0 q_max_pkts=5\n  rcv: os=0(0%) os_slow=0 os_error=0\n  \
                 snd: q=0+0 ul={ul} os={os}(0%)\n  snd: LOCK cp=1(2%) pkt=4(1%) snd=7(1%) poll=0(0%) defer=0(0%)\n"
            );
            let mut proof = Proof::default();
            proof.add_dumped(&dumped_sockets(&dump));
            proof.verdict()
        };
        assert_eq!(dump("10.0.0.2:5000", 0, 0, 0), Acceleration::NotSeen);
        assert_eq!(dump("10.0.0.2:5000", 7, 0, 0), Acceleration::Accelerated(1));
        assert_eq!(dump("0.0.0.0:0", 0, 0, 12), Acceleration::Accelerated(1));
        assert_eq!(dump("0.0.0.0:0", 1, 3, 0), Acceleration::Accelerated(1), "the rest may be loopback");
        for through in [dump("10.0.0.2:5000", 7, 1, 0), dump("0.0.0.0:0", 0, 1, 0)] {
            assert!(matches!(through, Acceleration::InKernel(_)), "{through:?}");
        }
    }
}
