//! Files as a boot loader finds them after a power failure: GRUB's own reader reads the blocks of a mounted file
//! system.

use super::{
    super::{Faults, FileState, OnFailure, State, TargetSpec, UndoStep, Writer, replace},
    Host,
    host::file as file_of_mine,
};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

const FILE: &str = "/boot/grub.cfg";

fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(output) } else { Err(format!("{program} {arguments:?}: {said}")) }
}

/// A tree whose /boot is a separate file system, in a file with the bytes that a disk would have.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// A disk that GRUB can read; the error names what is missing here.
    fn new(make: &str, arguments: &[&str]) -> Result<Self, String> {
        let disk = Self::mounted(make, arguments)?;
        disk.grub()?;
        Ok(disk)
    }

    /// With a file that had enough time to settle.
    fn mounted(make: &str, arguments: &[&str]) -> Result<Self, String> {
        let disk = Self { dir: TempDir::new().unwrap() };
        let image = disk.image().display().to_string();
        fs::File::create(disk.image()).and_then(|file| file.set_len(400 << 20)).unwrap();
        run(make, &[arguments, &[image.as_str()]].concat())?;
        fs::create_dir_all(disk.boot()).unwrap();
        let boot = disk.boot().display().to_string();
        run("mount", &["-o", "loop", &image, &boot])?;
        fs::write(disk.boot().join("grub.cfg"), text("old")).unwrap();
        run("umount", &[&boot])?;
        run("mount", &["-o", "loop", &image, &boot])?;
        Ok(disk)
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("host")
    }

    fn boot(&self) -> PathBuf {
        self.tree().join("boot")
    }

    fn writer(&self, faults: Faults) -> Writer {
        Writer::below(&self.tree()).unwrap().with_faults(faults)
    }

    /// The file as GRUB finds it now; `None` if it finds none.
    fn grub(&self) -> Result<Option<String>, String> {
        let image = self.image().display().to_string();
        let ls = run("grub-fstest", &[&image, "ls", "(loop0)/"])?;
        if !String::from_utf8_lossy(&ls.stdout).split_whitespace().any(|name| name == "grub.cfg") {
            return Ok(None);
        }
        let cat = run("grub-fstest", &[&image, "cat", "(loop0)/grub.cfg"])?;
        Ok(Some(String::from_utf8_lossy(&cat.stdout).into_owned()))
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.boot())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.retain(|name| name != "lost+found");
        names.sort();
        names
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        run("umount", &["-l", &self.boot().display().to_string()]).ok();
    }
}

/// Longer than a block, so that a part of it could be missing.
fn text(word: &str) -> String {
    format!("# {word}\n").repeat(2_000)
}

fn file(word: &str) -> State {
    State::File(FileState::of_root(text(word), 0o644))
}

/// At each operation of a change, and at its end: GRUB finds the complete old or new file.
fn is_whole_at_any_moment(make: &str, arguments: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: takes root, to mount a file system");
        return;
    }
    let disk = match Disk::new(make, arguments) {
        Ok(disk) => disk,
        Err(missing) => {
            eprintln!("skipped: no file system to look at with GRUB's eyes: {missing}");
            return;
        }
    };
    let mut before = Some(text("old"));
    let changes = [
        ("first", file("first")),
        ("second", file("second")),
        ("none", State::Absent),
        ("third", file("third")),
    ];
    for (name, to) in changes {
        let after = (to != State::Absent).then(|| text(name));
        for at in 0.. {
            let faults = Faults::crash_at(at);
            let done = disk.writer(faults.clone()).write_file(FILE, &to);
            let found = disk.grub().unwrap();
            assert!(
                found == before || found == after,
                "{name}, operation {at}: {:?} bytes",
                found.map(|it| it.len())
            );
            disk.writer(Faults::none()).read_file(FILE).unwrap();
            if done.is_ok() {
                assert!(faults.count() <= at && found == after, "{name}: GRUB does not find what is done");
                assert_eq!(disk.names().len(), usize::from(after.is_some()), "{:?}", disk.names());
                break;
            }
        }
        before = after;
    }
}

#[test]
fn grub_finds_a_whole_file_on_ext4_at_any_moment() {
    is_whole_at_any_moment("mkfs.ext4", &["-q", "-F"]);
}

#[test]
fn grub_finds_a_whole_file_on_xfs_at_any_moment() {
    is_whole_at_any_moment("mkfs.xfs", &["-q", "-f"]);
}

/// A crash at each operation, including errors of settling: the file can be read, and is the old or the new
/// one. An error without a crash leaves no second name behind.
fn is_read_at_any_moment(make: &str, arguments: &[&str]) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: takes root, to mount a file system");
        return;
    }
    let disk = match Disk::mounted(make, arguments) {
        Ok(disk) => disk,
        Err(missing) => {
            eprintln!("skipped: no file system with a journal: {missing}");
            return;
        }
    };
    let bytes = |state: State| match state {
        State::File(file) => Some(String::from_utf8(file.bytes).unwrap()),
        State::Absent => None,
        other => panic!("{other}"),
    };
    let mut before = Some(text("old"));
    let mut is_seen = false;
    for (name, to) in [("first", file("first")), ("none", State::Absent), ("second", file("second"))] {
        let after = (to != State::Absent).then(|| text(name));
        for at in 0.. {
            let busy = rustix::io::Errno::BUSY.raw_os_error();
            let failed = disk.writer(Faults::error_at(at, busy)).write_file(FILE, &to).is_err();
            let names = disk.names();
            // After the rename the second name of the old file may stay until the next attempt.
            let found = bytes(disk.writer(Faults::none()).read_file(FILE).unwrap());
            assert!(!failed || found == after || names.len() <= 1, "{name}, error at {at}: {names:?}");
            disk.writer(Faults::none())
                .write_file(FILE, &before.clone().map_or(State::Absent, whole))
                .unwrap();

            let done = disk.writer(Faults::crash_at(at)).write_file(FILE, &to);
            let found = bytes(disk.writer(Faults::none()).read_file(FILE).unwrap());
            assert!(found == before || found == after, "{name}, crash at {at}");
            is_seen |= fs::metadata(disk.boot().join("grub.cfg")).is_ok_and(|meta| meta.nlink() == 2);
            if done.is_ok() {
                break;
            }
        }
        before = after;
    }
    assert!(is_seen, "no crash left the second name");
}

fn whole(text: String) -> State {
    State::File(FileState::of_root(text, 0o644))
}

#[test]
fn what_a_crash_leaves_is_read_on_ext4() {
    is_read_at_any_moment("mkfs.ext4", &["-q", "-F"]);
}

#[test]
fn what_a_crash_leaves_is_read_on_xfs() {
    is_read_at_any_moment("mkfs.xfs", &["-q", "-f"]);
}

/// For hosts that cannot mount file systems: the second name is created manually, as a crash leaves it, for
/// the old file in an apply and for lowlat's in a rollback. Both ways stay possible.
#[test]
fn the_second_name_that_a_crash_left_closes_no_way() {
    for (is_removed, in_rollback, is_finished) in [false, true]
        .into_iter()
        .flat_map(|a| [(a, false, false), (a, false, true), (a, true, false), (a, true, true)])
    {
        let host = Host::empty();
        fs::create_dir_all(host.root.join("boot")).unwrap();
        host.put("boot/grub.cfg", "old", 0o600);
        let start = host.tree(true);
        let new = if is_removed { State::Absent } else { file_of_mine("new", 0o600) };
        let steps = [host.step("menu", TargetSpec::file(FILE), new)];
        let apply =
            |faults| host.open(faults).and_then(|mut log| log.apply("p", &steps, OnFailure::RollBack));
        if in_rollback {
            apply(Faults::none()).unwrap();
        } else {
            // At the first operation on the host, right after the intention.
            let crash = (0..200).find(|at| {
                let _ = apply(Faults::crash_at(*at));
                host.open(Faults::none()).unwrap().history().entry("p", "menu").is_some()
            });
            assert!(crash.is_some());
        }
        let kept = replace::old_name(&host.writer(Faults::none()).find(FILE, false).unwrap());
        let (menu, kept) = (host.root.join("boot/grub.cfg"), host.root.join("boot").join(kept));
        if menu.exists() {
            fs::hard_link(&menu, &kept).unwrap();
        }
        if is_finished {
            // As its caller does, for the current state.
            let step = |step: &UndoStep| host.step(&step.id, step.target.clone(), step.new.clone());
            let again: Vec<UndoStep> = steps.iter().map(step).collect();
            host.open(Faults::none()).unwrap().apply("p", &again, OnFailure::RollBack).unwrap();
            assert!(!kept.exists());
        }
        let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
        assert!(report.is_complete(), "{report}");
        assert_eq!(host.tree(true), start);
    }
}

/// Any other second name belongs to someone else, and so does a third one.
#[test]
fn other_second_names_are_refused() {
    let host = Host::empty();
    fs::create_dir_all(host.root.join("boot")).unwrap();
    host.put("boot/grub.cfg", "old", 0o600);
    let writer = host.writer(Faults::none());
    let menu = host.root.join("boot/grub.cfg");
    let kept = host.root.join("boot").join(replace::old_name(&writer.find(FILE, false).unwrap()));
    fs::hard_link(&menu, host.root.join("boot/theirs")).unwrap();
    assert!(writer.read_file(FILE).unwrap_err().to_string().contains("hard links"));
    fs::hard_link(&menu, &kept).unwrap();
    assert!(writer.read_file(FILE).is_err());
    fs::remove_file(host.root.join("boot/theirs")).unwrap();
    writer.read_file(FILE).unwrap();
    fs::remove_file(&kept).unwrap();
    fs::hard_link(&menu, host.root.join("boot/theirs")).unwrap();
    fs::write(&kept, "another file").unwrap();
    assert!(writer.read_file(FILE).is_err());
}

/// Other files than a boot loader's are written as before, and the check itself costs nothing.
#[test]
fn other_files_are_replaced_without_it() {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("etc")).unwrap();
    let faults = Faults::traced();
    let writer = Writer::below(dir.path()).unwrap().with_faults(faults.clone());
    writer.write_file("/etc/lowlat.conf", &file("any")).unwrap();
    let trace = faults.trace();
    assert!(!trace.is_empty() && !trace.iter().any(|done| done.contains("journal")), "{trace:?}");
    assert!(Path::new(&dir.path().join("etc/lowlat.conf")).exists());
}
