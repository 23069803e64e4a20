//! Run folders prepared by another user, and masters that run as another user.

use super::pipeline::{PATIENCE, Pipeline, request, wait_for};
use crate::common::binary;
use lowlat_ipc::passing;
use lowlat_node::control::{ToNode, encode};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with},
    process::{Gid, Uid, geteuid},
};
use std::{
    fs::{self, Permissions},
    io::Read,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{PermissionsExt, chown, symlink},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Instant,
};
use tempfile::TempDir;

/// Users below this number exist on real hosts.
const USERS: u32 = 20_000;
const ATTACKER: u32 = 65_534;
/// Content of the file that the attacker wants overwritten.
const PRECIOUS: &str = "precious\n";

/// A victim, and the location of its runs without XDG_RUNTIME_DIR.
struct Place {
    /// A user id that no host and no other test uses.
    victim: u32,
    home: PathBuf,
    /// A directory of the victim that nobody else can write.
    own: TempDir,
}

impl Place {
    fn new() -> Option<Self> {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        if !geteuid().is_root() {
            eprintln!("skipped: run folders of another user: only root can prepare them");
            return None;
        }
        // Relaxed: a counter. Concurrent processes of these tests start at different numbers.
        let victim = loop {
            let number = std::process::id() * 32 + PLACES.fetch_add(1, Ordering::Relaxed);
            let victim = USERS + number % USERS;
            if home_of(victim).symlink_metadata().is_err() {
                break victim;
            }
        };
        let place = Self { victim, home: home_of(victim), own: TempDir::new().unwrap() };
        fs::write(place.precious(), PRECIOUS).unwrap();
        for path in [place.own.path(), &place.precious()] {
            give(path, victim, 0o700);
        }
        Some(place)
    }

    fn precious(&self) -> PathBuf {
        self.own.path().join("precious")
    }

    /// Creates a directory inside the victim's place.
    fn make(&self, inside: &str, user: u32, mode: u32) -> PathBuf {
        let path = self.home.join(inside);
        fs::create_dir(&path).unwrap();
        give(&path, user, mode);
        path
    }
}

fn home_of(victim: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/lowlat-{victim}"))
}

/// Runs a pipeline as the victim.
fn run_as_victim(place: &Place) -> Output {
    as_victim(
        place,
        &["pipeline", "run", "--name", "desk", "--strategies", "1", "--duration", "1s", "--force"],
    )
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_link = self.home.symlink_metadata().is_ok_and(|known| known.is_symlink());
        if is_link {
            fs::remove_file(&self.home).ok()
        } else {
            fs::remove_dir_all(&self.home).ok()
        };
    }
}

fn give(path: &Path, user: u32, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    chown(path, Some(user), Some(user)).unwrap();
}

/// Runs the binary as the victim without a runtime directory, and ends it if it hangs.
fn as_victim(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .uid(place.victim)
        .gid(place.victim)
        .env_remove("XDG_RUNTIME_DIR")
        .current_dir("/");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE {
        thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().ok();
    let mut stderr = Vec::new();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    Output { status: child.wait().unwrap(), stdout: Vec::new(), stderr }
}

/// A trap: its name, a function that prepares it, and the words that the victim's run reports.
type Trap = (&'static str, fn(&Place), &'static str);

const TRAPS: &[Trap] = &[
    (
        "a home of the attacker with a link as lock",
        |place| {
            place.make("", ATTACKER, 0o777);
            let desk = place.make("desk", ATTACKER, 0o777);
            symlink(place.precious(), desk.join("lock")).unwrap();
        },
        "it belongs to user 65534",
    ),
    (
        "a home of the attacker with links as logs",
        |place| {
            place.make("", ATTACKER, 0o777);
            place.make("desk", ATTACKER, 0o777);
            let log = place.make("desk/log", ATTACKER, 0o777);
            for role in ["md", "td", "s0"] {
                symlink(place.precious(), log.join(format!("{role}.log"))).unwrap();
            }
        },
        "it belongs to user 65534",
    ),
    (
        "a home of the victim that others can write, with the attacker's run folder in it",
        |place| {
            place.make("", place.victim, 0o777);
            let desk = place.make("desk", ATTACKER, 0o777);
            symlink(place.precious(), desk.join("lock")).unwrap();
        },
        "other users can write it",
    ),
    (
        "a home that is a link to a folder of the victim",
        |place| {
            fs::create_dir(place.own.path().join("desk")).unwrap();
            fs::write(place.own.path().join("desk/document"), PRECIOUS).unwrap();
            give(&place.own.path().join("desk"), place.victim, 0o700);
            symlink(place.own.path(), &place.home).unwrap();
            // As on a host that does not protect links (fs.protected_symlinks=0).
            std::os::unix::fs::lchown(&place.home, Some(place.victim), None).unwrap();
        },
        "found a symbolic link, expected a directory",
    ),
    (
        "a run folder of the victim with a link as lock",
        |place| {
            place.make("", place.victim, 0o700);
            let desk = place.make("desk", place.victim, 0o700);
            symlink(place.precious(), desk.join("lock")).unwrap();
        },
        "found a symbolic link, expected a file",
    ),
    (
        "a run folder of the victim with a link as log",
        |place| {
            place.make("", place.victim, 0o700);
            place.make("desk", place.victim, 0o700);
            let log = place.make("desk/log", place.victim, 0o700);
            symlink(place.precious(), log.join("td.log")).unwrap();
        },
        "found a symbolic link, expected a file",
    ),
    (
        "a pipe as lock",
        |place| {
            place.make("", place.victim, 0o700);
            let desk = place.make("desk", place.victim, 0o700);
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let pipe = desk.join("lock");
            rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            give(&pipe, place.victim, 0o600);
        },
        "found a pipe, expected a file",
    ),
];

#[test]
fn a_prepared_run_folder_is_refused_and_nothing_is_written_through_it() {
    for (trap, prepare, expected) in TRAPS {
        let Some(place) = Place::new() else { return };
        prepare(&place);
        let output = run_as_victim(&place);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(fs::read_to_string(place.precious()).unwrap(), PRECIOUS, "{trap}: {said}");
        let document = place.own.path().join("desk/document");
        assert!(!place.home.is_symlink() || document.exists(), "{trap}: removed: {said}");
        assert!(!output.status.success() && said.contains(expected), "{trap}: {output:?}");
        assert!(said.contains("\nhint: "), "{trap}: {said}");
    }
}

/// A victim's run finds runs of other users without following what they placed as a lock.
#[test]
fn other_users_locks_neither_hang_a_run_nor_reach_the_terminal() {
    let Some(place) = Place::new() else { return };
    place.make("", ATTACKER, 0o755);
    for name in ["pipe", "\x1b[31mred"] {
        place.make(name, ATTACKER, 0o755);
    }
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR | rustix::fs::Mode::ROTH;
    let pipe = place.home.join("pipe/lock");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    // Held by its process, like a master's lock.
    let lock = place.home.join("\x1b[31mred/lock");
    fs::write(&lock, std::process::id().to_string()).unwrap();
    let lock = fs::File::open(&lock).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let pipeline = Pipeline::start(&["--duration", "1s"]);
    let output = pipeline.end();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!output.stderr.contains(&0x1b) && !output.stdout.contains(&0x1b), "{output:?}");
}

/// A master of the attacker, which refuses the joining process and keeps what that process sent.
fn attackers_master(socket: PathBuf) -> thread::JoinHandle<Vec<u8>> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let master = thread::spawn(move || {
        let fd = as_attacker(&socket);
        ready.send(()).unwrap();
        let patience = Timespec { tv_sec: 20, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience)).unwrap() == 0 {
            return Vec::new();
        }
        let node = accept_with(&fd, SocketFlags::CLOEXEC).unwrap();
        let reason = "the attacker was here".to_owned();
        let refused = encode(&ToNode::Refused { reason }).unwrap();
        passing::send(&node, &refused, &[]).ok();
        passing::receive(&node).ok().flatten().map(|received| received.bytes).unwrap_or_default()
    });
    is_ready.recv().unwrap();
    master
}

/// A socket that listens as another user: the kernel remembers the listening thread's user.
fn as_attacker(socket: &Path) -> OwnedFd {
    let (user, group) = (Uid::from_raw(ATTACKER), Gid::from_raw(ATTACKER));
    rustix::thread::set_thread_res_gid(group, group, group).unwrap();
    rustix::thread::set_thread_res_uid(user, user, user).unwrap();
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    bind(&fd, &SocketAddrUnix::new(socket).unwrap()).unwrap();
    fs::set_permissions(socket, Permissions::from_mode(0o777)).unwrap();
    listen(&fd, 1).unwrap();
    fd
}

#[test]
fn a_node_sends_nothing_to_another_users_master() {
    // Once as is, and once with the file owned by the victim: the kernel still knows who listens.
    for (is_given, expected) in [(false, "it belongs to user 65534"), (true, "it runs as user 65534")] {
        let Some(place) = Place::new() else { return };
        let home = place.make("", place.victim, 0o1777);
        let socket = home.join("master.sock");
        let master = attackers_master(socket.clone());
        if is_given {
            chown(&socket, Some(place.victim), Some(place.victim)).unwrap();
        }
        let output = as_victim(
            &place,
            &["pipeline-role", "strategies", "--master", socket.to_str().unwrap(), "--run", &request(None)],
        );
        let said = String::from_utf8_lossy(&output.stderr);
        // Unblocks a master that nobody has joined.
        let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::connect(&fd, &SocketAddrUnix::new(&socket).unwrap()).ok();
        drop(fd);
        let heard = String::from_utf8_lossy(&master.join().unwrap()).into_owned();
        assert!(heard.is_empty(), "it received {heard}");
        assert!(!output.status.success() && said.contains(expected), "{said}");
        assert!(!said.contains("the attacker was here"), "{said}");
    }
}

#[test]
fn another_users_node_is_refused_before_its_message_is_read() {
    let Some(place) = Place::new() else { return };
    let pipeline = Pipeline::start(&["--duration", "4s"]);
    // As if the directory were open to everybody.
    for path in [pipeline.folder(), pipeline.folder().parent().unwrap().to_owned()] {
        fs::set_permissions(path, Permissions::from_mode(0o711)).unwrap();
    }
    fs::set_permissions(pipeline.folder().ancestors().nth(2).unwrap(), Permissions::from_mode(0o711))
        .unwrap();
    fs::set_permissions(pipeline.socket(), Permissions::from_mode(0o777)).unwrap();
    let output = as_victim(
        &place,
        &[
            "pipeline-role",
            "cached",
            "--master",
            pipeline.socket().to_str().unwrap(),
            "--run",
            &request(Some(&place.own.path().join("store"))),
        ],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("user"), "{said}");
    wait_for("the run ends", || !pipeline.socket().exists());
    assert_eq!(pipeline.end().status.code(), Some(0));
}
