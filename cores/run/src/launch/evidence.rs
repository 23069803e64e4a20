//! Evidence of acceleration, from the mappings, files and sockets of a running command and of its descendants.

use lowlat_host::Reading;
use lowlat_host_run::{
    Root,
    programs::{Program, open_files},
    task_stat::{TaskStat, children},
};
use lowlat_launch::{
    Acceleration, Accelerator, KernelSocket, Library, OnloadSocket, ProcessEvidence, Proof, SocketEnds,
    SocketScope, dumped_sockets,
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::{Duration, Instant},
};

/// The kernel's tables of internet sockets, below /proc/PID/net.
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];
/// Pauses between two questions about sockets of Onload: the longer, the longer nothing new was seen, since each
/// question starts a program.
const ASK_EARLY: Duration = Duration::from_millis(200);
const ASK_LATE: Duration = Duration::from_secs(60);
/// Most sockets in one question.
const ASKED_MAX: usize = 1_000;

/// Looks at a command again and again while it runs.
pub struct AccelerationLook<'a> {
    root: &'a Root,
    accelerator: &'a Accelerator,
    launcher: &'a [String],
    proof: Proof,
    /// Processes of the command with their start times. They stay its own if their parents end.
    known: BTreeMap<u32, u64>,
    asked: BTreeSet<OnloadSocket>,
    ask_pause: Duration,
    ask_next: Instant,
}

impl<'a> AccelerationLook<'a> {
    pub fn new(
        root: &'a Root,
        accelerator: &'a Accelerator,
        launcher: &'a [String],
        scope: SocketScope,
    ) -> Self {
        Self {
            root,
            accelerator,
            launcher,
            proof: Proof::new(scope),
            known: BTreeMap::new(),
            asked: BTreeSet::new(),
            ask_pause: ASK_EARLY,
            ask_next: Instant::now(),
        }
    }

    /// Looks at these processes and their descendants, and returns what was found since the start.
    pub fn again(&mut self, pids: &[u32]) -> Acceleration {
        self.find(pids);
        let mut own = BTreeSet::new();
        for pid in self.known.keys().copied().collect::<Vec<_>>() {
            let Some(process) = self.process(pid, pids.contains(&pid)) else { continue };
            own.extend(process.onload_sockets.iter().copied());
            self.proof.add(self.accelerator, &process);
        }
        self.ask(own);
        self.proof.verdict()
    }

    /// Sends a signal to the descendants that were seen, which outlive their parent.
    pub fn send(&mut self, signal: Signal) {
        self.find(&[]);
        for pid in self.known.keys().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?)) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// Finds the descendants, and forgets those that have ended.
    fn find(&mut self, pids: &[u32]) {
        let before = std::mem::take(&mut self.known);
        let first = pids.iter().map(|pid| (*pid, None));
        let mut to_visit: Vec<(u32, Option<u64>)> =
            before.into_iter().map(|(pid, ticks)| (pid, Some(ticks))).chain(first).collect();
        while let Some((pid, expected)) = to_visit.pop() {
            let stat = TaskStat::read(self.root, &format!("/proc/{pid}/stat")).into_known();
            let Some(ticks) = stat.and_then(|stat| Some(stat.usage?.start_ticks)) else { continue };
            // Another process may have the number by now.
            if expected.is_none_or(|expected| expected == ticks) && self.known.insert(pid, ticks).is_none() {
                to_visit.extend(children(self.root, pid).into_iter().map(|child| (child, None)));
            }
        }
    }

    /// Reads a process; `None` if it has ended.
    fn process(&self, pid: u32, is_first: bool) -> Option<ProcessEvidence> {
        let root = self.root;
        let stat = TaskStat::read(root, &format!("/proc/{pid}/stat")).into_known()?;
        let library = library(self.accelerator.library(), self.launcher, |file| {
            root.read_bytes(&format!("/proc/{pid}/{file}")).into_known().unwrap_or_default()
        });
        let open = open_files(root, pid);
        let is_denied = matches!(open, Reading::Denied);
        let files = open.into_known().unwrap_or_default();
        let inodes: BTreeSet<&str> =
            files.iter().filter_map(|file| file.strip_prefix("socket:[")?.strip_suffix(']')).collect();
        // Another process's tables are those of its network namespace. Without sockets they are not needed.
        let tables = TABLES.into_iter().filter(|_| !inodes.is_empty());
        let kernel_sockets = tables.flat_map(|table| {
            let text = root.read(&format!("/proc/{pid}/net/{table}")).into_known().unwrap_or_default();
            text.lines().skip(1).filter_map(|line| socket(table, line, &inodes)).collect::<Vec<_>>()
        });
        let is_device = |file: &&String| {
            !matches!(self.accelerator, Accelerator::Onload(_)) && file.starts_with("/dev/infiniband/uverbs")
        };
        Some(ProcessEvidence {
            name: stat.comm,
            library,
            is_first,
            is_denied,
            kernel_sockets: kernel_sockets.collect(),
            onload_sockets: files.iter().filter_map(|file| OnloadSocket::parse(file)).collect(),
            device: files.iter().find(is_device).cloned(),
        })
    }

    /// Asks Onload who carries the traffic of these sockets.
    fn ask(&mut self, mut own: BTreeSet<OnloadSocket>) {
        own.retain(|socket| !self.proof.has_carried(*socket));
        if own.is_empty() {
            return;
        }
        if !own.is_subset(&self.asked) {
            self.ask_pause = ASK_EARLY;
        }
        let now = Instant::now();
        if now < self.ask_next && self.ask_pause > ASK_EARLY {
            return;
        }
        self.ask_next = now + self.ask_pause;
        self.ask_pause = (self.ask_pause * 2).min(ASK_LATE);
        // A program that hangs would keep signals from the command.
        let mut command = ["timeout", "5", "onload_stackdump"].map(str::to_owned).to_vec();
        command.extend(own.iter().take(ASKED_MAX).map(ToString::to_string));
        command.push("dump".to_owned());
        let dump = Program { command: &command, folder: "", environment: &[] }.output();
        match dump.map(|dump| dumped_sockets(&dump)).filter(|sockets| !sockets.is_empty()) {
            Some(sockets) => self.proof.add_dumped(&sockets),
            None => self.proof.add_unproven("onload_stackdump does not show what Onload's sockets carried"),
        }
        self.asked = own;
    }
}

/// Returns whether a library is in a process, by its files below /proc/PID. The loader maps it before the C library, so one
/// without the other tells that it will not come.
fn library(name: &str, launcher: &[String], mut read: impl FnMut(&'static str) -> Vec<u8>) -> Library {
    // Read before the mappings: a launcher may become the program at any time, and its own mappings tell nothing.
    let arguments = read("cmdline");
    // They are empty while a process starts or ends.
    let maps = read("maps");
    let maps = String::from_utf8_lossy(&maps);
    let files: BTreeSet<&str> = maps.lines().filter_map(mapped_file).collect();
    let has = |name: &str| files.iter().any(|file| file.starts_with(name));
    match files.is_empty() || arguments.is_empty() || is_launching(&arguments, launcher) {
        _ if has(name) => Library::Mapped,
        false if has("libc.so") || has("libc-2") => Library::Missing,
        false if !has("ld-") && !has("ld.so") => Library::Static,
        _ => Library::Unknown,
    }
}

/// Returns the name of the file that a line of /proc/PID/maps maps: "libvma.so.9.8.51".
fn mapped_file(line: &str) -> Option<&str> {
    line.contains('/').then(|| line.rsplit('/').next()).flatten()
}

/// Returns whether a process is still the launcher: its arguments contain the launcher's words.
fn is_launching(arguments: &[u8], launcher: &[String]) -> bool {
    let Some((program, options)) = launcher.split_first() else { return false };
    let words: Vec<&[u8]> = arguments.split(|byte| *byte == 0).collect();
    let is_program = |word: &[u8]| word.rsplit(|byte| *byte == b'/').next() == Some(program.as_bytes());
    words.windows(launcher.len()).any(|window| {
        is_program(window[0])
            && window[1..].iter().zip(options).all(|(word, option)| *word == option.as_bytes())
    })
}

/// Parses a line of /proc/net/tcp or udp (Documentation/networking/proc_net_tcp.rst), if it is one of these sockets.
fn socket(protocol: &'static str, line: &str, inodes: &BTreeSet<&str>) -> Option<KernelSocket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, remote, state, inode) = (fields.get(1)?, fields.get(2)?, fields.get(3)?, fields.get(9)?);
    inodes.contains(inode).then_some(())?;
    let ends = SocketEnds { local: address(local)?, remote: address(remote)? };
    Some(KernelSocket { protocol, ends, state: u8::from_str_radix(state, 16).ok()? })
}

/// Parses "0100007F:1F90": 32-bit words in the order of the processor, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families() {
        let text = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(text("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(text("00000000000000000000000001000000:0016").as_deref(), Some("[::1]:22"));
        assert_eq!(text("0000000000000000FFFF00000100000A:0050").as_deref(), Some("10.0.0.1:80"), "mapped");
        for bad in ["", ":", "0100007F", "0100007:1F90", "0100007F:XYZ", "ÿ100007F:1F90"] {
            assert_eq!(text(bad), None, "{bad}");
        }
    }

    #[test]
    fn files_are_named_and_launchers_known() {
        let line = "7f10-7f20 r-xp 00000000 08:01 12 /usr/lib64/libvma.so.9.8.51";
        assert_eq!(mapped_file(line), Some("libvma.so.9.8.51"));
        assert_eq!(
            (mapped_file("7f10-7f20 rw-p 0 0:0 0"), mapped_file("1-2 rw-p 0 0:0 0 [stack]")),
            (None, None)
        );
        let launcher = ["onload", "-p", "latency"].map(str::to_owned);
        let is = |words: &str| is_launching(words.replace(' ', "\0").as_bytes(), &launcher);
        assert!(is("/bin/sh /usr/bin/onload -p latency ./md ") && is("onload -p latency sh "));
        assert!(!is("./md -p latency ") && !is("/bin/sh -c ./onload ") && !is_launching(b"./md\0", &[]));
    }

    #[test]
    fn a_launcher_that_becomes_the_program_meanwhile_is_unknown() {
        let launcher = ["onload".to_owned()];
        let mut is_replaced = false;
        let library = library("libonload.so", &launcher, |file| match file {
            "maps" if !std::mem::replace(&mut is_replaced, true) => {
                "1-2 r-xp 0 0:0 1 /usr/lib/libc.so.6\n".into()
            }
            "cmdline" if is_replaced => "./md\0".into(),
            "cmdline" => "/bin/sh\0/usr/bin/onload\0./md\0".into(),
            _ => unreachable!(),
        });
        assert_eq!(library, Library::Unknown);
    }

    #[test]
    fn a_tree_shows_the_sockets_of_a_child() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: 0100000A:1F90 0200000A:1388 01 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
             \x20  1: 0100000A:1F91 0200000A:1388 0A 00000000:00000000 00:00000000 00000000     0        0 4343 1\n";
        let inodes = BTreeSet::from(["4242", "4343"]);
        let sockets: Vec<_> = table.lines().skip(1).filter_map(|line| socket("tcp", line, &inodes)).collect();
        let shown: Vec<String> = sockets.iter().map(|socket| socket.ends.to_string()).collect();
        assert_eq!(shown, ["10.0.0.1:8080 to 10.0.0.2:5000", "10.0.0.1:8081 to 10.0.0.2:5000"]);
        assert_eq!([sockets[0].state, sockets[1].state], [1, 10]);

        let stat = |pid: u32, name: &str, start: u32| {
            let zeros = "0 ".repeat(16);
            (
                format!("/proc/{pid}/stat"),
                format!("{pid} ({name}) S 1 1 {zeros}{start} 0 0 {zeros}0 0 0 0\n").into_bytes(),
            )
        };
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let root = Root::in_memory(
            "test",
            [
                stat(7, "sh", 100),
                stat(8, "md", 200),
                file("/proc/7/task/7/children", "8 "),
                file("/proc/7/maps", "1-2 r-xp 0 0:0 1 /usr/lib64/libonload.so\n"),
                file("/proc/8/maps", "1-2 r-xp 0 0:0 1 /usr/bin/md\n"),
                file("/proc/8/cmdline", "./md\0"),
            ],
        );
        let onload = Accelerator::Onload("latency".into());
        let mut look = AccelerationLook::new(&root, &onload, &[], SocketScope::default());
        assert_eq!(look.again(&[7]), Acceleration::NotSeen);
        assert_eq!(look.known, BTreeMap::from([(7, 100), (8, 200)]));
        assert_eq!(look.process(8, true).unwrap().library, Library::Static);
    }
}
