//! Small archives that unpack to much: each is refused with the limit that it exceeds, or read within bounded memory.

use super::host::{Host, Node};
use crate::common::{binary, text};
use flate2::{Compression, write::GzEncoder};
use std::{
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

/// Memory that lowlat may use for any of these captures.
const MEMORY_KIB: u64 = 1 << 20;
/// Far above what any of these captures takes; only a hang reaches it.
const WATCHDOG: Duration = Duration::from_secs(300);

/// Runs lowlat with a bounded address space; `None` if the watchdog ends it.
fn bounded(arguments: &[&str]) -> Option<Output> {
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY_KIB} && exec \"$@\""), "sh"])
        .arg(binary())
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("sh starts");
    let start = Instant::now();
    loop {
        if child.try_wait().expect("the state of a child").is_some() {
            return Some(child.wait_with_output().expect("its output"));
        }
        if start.elapsed() > WATCHDOG {
            child.kill().expect("a child that can be killed");
            child.wait().expect("the end of a child");
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A packed tar with a hostile part.
struct Bomb {
    /// Description of the hostile part.
    name: &'static str,
    /// The commands that read it.
    commands: &'static [&'static [&'static str]],
    /// A part of the message; empty where the capture is read.
    refusal: &'static str,
    build: fn() -> Vec<u8>,
}

const SHOW: &[&[&str]] = &[&["host", "show"]];
const AUDIT: &[&[&str]] = &[&["audit"]];
const SHOW_AND_PLAN: &[&[&str]] = &[&["host", "show"], &["tune", "plan"]];

const BOMBS: &[Bomb] = &[
    Bomb {
        name: "a path of 500,000 levels",
        commands: SHOW,
        refusal: "an extended tar header has 1000000 bytes",
        build: || with_long_name(b'L', "a/".repeat(500_000).as_bytes()),
    },
    Bomb {
        name: "a path of 20,000 levels in PAX records",
        commands: SHOW,
        refusal: "and Linux allows 4096",
        build: || with_pax(&[("path", &"a/".repeat(20_000))]),
    },
    Bomb {
        name: "a path of 1,000 levels",
        commands: SHOW,
        refusal: "has 1000 levels, at most 256 are supported",
        build: || with_long_name(b'L', "a/".repeat(1_000).as_bytes()),
    },
    Bomb {
        name: "a link target of 800 kB",
        commands: SHOW,
        refusal: "an extended tar header has 800000 bytes",
        build: || with_long_name(b'K', "a/".repeat(400_000).as_bytes()),
    },
    Bomb {
        name: "a link target of 40 kB",
        commands: SHOW,
        refusal: "link target \"a/a/a/",
        build: || with_long_name(b'K', "a/".repeat(20_000).as_bytes()),
    },
    Bomb {
        name: "a long name of 40 MB",
        commands: SHOW,
        refusal: "an extended tar header has 40000000 bytes",
        build: || with_long_name(b'L', &vec![b'a'; 40_000_000]),
    },
    Bomb {
        name: "paths in the lists of a capture",
        commands: SHOW,
        refusal: "and Linux allows 4096",
        build: || {
            let line = format!("/{}\n", "a/".repeat(200_000));
            with_files(&[(".lowlat/names".to_owned(), line.into_bytes())])
        },
    },
    Bomb {
        name: "deep folders, each with a name of its own",
        commands: SHOW,
        refusal: "its paths take more than",
        build: || {
            let below = "/aaaaaaaaaaaaaa".repeat(250);
            with_files(&(0..2_000).map(|at| (format!("d{at}{below}"), Vec::new())).collect::<Vec<_>>())
        },
    },
    Bomb {
        name: "20,000 CPUs",
        commands: SHOW,
        refusal: "Linux supports CPUs 0-8191",
        build: || with_cpus(20_000),
    },
    Bomb {
        name: "300 MB of zeros",
        commands: SHOW,
        refusal: "its files contain more than 268435456 bytes",
        build: || {
            let files = (0..20).map(|at| (format!("etc/zero{at}"), vec![0; 15_000_000]));
            with_files(&files.collect::<Vec<_>>())
        },
    },
    Bomb {
        name: "a chain of links, each of many components",
        commands: SHOW_AND_PLAN,
        refusal: "",
        build: chain_of_links,
    },
    Bomb {
        name: "one large file behind every name",
        commands: AUDIT,
        refusal: "",
        build: one_file_everywhere,
    },
    Bomb {
        name: "CPU lists that name every CPU many times",
        commands: SHOW_AND_PLAN,
        refusal: "",
        build: long_lists,
    },
];

fn with_files(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut host = Host { nodes: Vec::new() };
    host.write("proc/version", "Linux\n");
    host.nodes.extend(files.iter().map(|(path, bytes)| (path.clone(), Node::File(bytes.clone()))));
    host.tar()
}

fn header(kind: u8, size: usize) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_path("proc/x").expect("a short path");
    header.set_entry_type(tar::EntryType::new(kind));
    header.set_size(size as u64);
    header.set_mode(0o644);
    if kind == b'2' {
        header.set_link_name("y").expect("a short name");
    }
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(512), 0);
    padded
}

/// A GNU long name (`L`) or long link target (`K`), and the entry that it belongs to.
fn with_long_name(kind: u8, name: &[u8]) -> Vec<u8> {
    let entry = if kind == b'K' { b'2' } else { b'0' };
    [header(kind, name.len()), padded(name), header(entry, 0), vec![0; 1024]].concat()
}

/// PAX records, and the entry that they belong to.
fn with_pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        let rest = format!(" {key}={value}\n");
        // The length counts its own digits.
        let longest = rest.len() + usize::MAX.to_string().len();
        let length = (1..longest).find(|length| length.to_string().len() + rest.len() == *length);
        text.push_str(&length.expect("some length counts itself").to_string());
        text.push_str(&rest);
    }
    [header(b'x', text.len()), padded(text.as_bytes()), header(b'0', 0), vec![0; 1024]].concat()
}

fn with_cpus(count: u32) -> Vec<u8> {
    let folder = "sys/devices/system/cpu";
    let mut files = vec![(format!("{folder}/online"), format!("0-{}\n", count - 1).into_bytes())];
    for cpu in 0..count {
        files.push((format!("{folder}/cpu{cpu}/topology/core_cpus_list"), format!("{cpu}\n").into_bytes()));
    }
    with_files(&files)
}

/// Forty links from one to the next, each through as many folders as a target can hold.
fn chain_of_links() -> Vec<u8> {
    let mut host = Host::fixture("one-cpu");
    host.nodes.retain(|(path, _)| !path.starts_with("sys/class/net"));
    let around = "class/../".repeat(126);
    for at in 0..39 {
        host.nodes.push((format!("sys/class/l{at}"), Node::Link(format!("../{around}class/l{}", at + 1))));
    }
    for at in 0..200 {
        host.nodes.push((format!("sys/class/net/eth{at}"), Node::Link("../l0".to_owned())));
    }
    host.nodes.push(("sys/class/l39/address".to_owned(), Node::File(b"00:00:00:00:00:00\n".to_vec())));
    host.tar()
}

/// Each of 2,200 small files a link to one of 1 MB, which readers would keep as often.
fn one_file_everywhere() -> Vec<u8> {
    let mut host = Host::fixture("epyc-7f32-stock");
    let large = vec![b'7'; 1_000_000];
    for (path, node) in &mut host.nodes {
        if path.starts_with("proc/sys/") || path.starts_with("sys/") || path.starts_with("proc/irq/") {
            *node = Node::Link("/large".to_owned());
        }
    }
    host.nodes.push(("large".to_owned(), Node::File(large)));
    host.tar()
}

fn long_lists() -> Vec<u8> {
    let mut host = Host::fixture("epyc-7f32-stock");
    let (list, stride) = ("0-8191,".repeat(9_000), "0-8191:1/2,".repeat(5_000));
    for (nth, (path, node)) in host.nodes.iter_mut().enumerate() {
        if path.ends_with("_list") || path.ends_with("cpulist") {
            *node = Node::File(if nth % 2 == 0 { list.clone() } else { stride.clone() }.into_bytes());
        }
    }
    host.tar()
}

fn packed(tar: &[u8], directory: &Path) -> std::path::PathBuf {
    let path = directory.join("bomb.tar.gz");
    let file = std::fs::File::create(&path).expect("a file in the test's directory");
    let mut gzip = GzEncoder::new(file, Compression::fast());
    gzip.write_all(tar).expect("room for the capture");
    gzip.finish().expect("the end of the capture");
    path
}

#[test]
fn a_small_capture_neither_exhausts_memory_nor_hangs() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut faults = Vec::new();
    for bomb in BOMBS {
        let root = packed(&(bomb.build)(), directory.path());
        for command in bomb.commands {
            let arguments = [*command, &["--root", root.to_str().expect("a path in UTF-8")]].concat();
            let Some(output) = bounded(&arguments) else {
                faults.push(format!("{}: {command:?} hangs", bomb.name));
                continue;
            };
            let stderr = text(&output.stderr);
            let is_refused = output.status.code() == Some(2) && !bomb.refusal.is_empty();
            let is_right = match output.status.code() {
                Some(2) => is_refused && stderr.contains(bomb.refusal) && stderr.contains("\nhint: "),
                Some(0 | 1 | 4) => bomb.refusal.is_empty(),
                _ => false,
            };
            if !is_right {
                let shown: String = stderr.chars().take(300).collect();
                faults.push(format!("{}: {command:?} ends with {}: {shown}", bomb.name, output.status));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_largest_host_that_linux_supports_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = packed(&with_cpus(8_192), directory.path());
    let output =
        bounded(&["cpus", "isolated", "--root", root.to_str().expect("a path in UTF-8")]).expect("no hang");
    assert!(output.status.success(), "{}", text(&output.stderr));
}
