//! What a boot loader finds when the power fails: GRUB's own reader looks at the blocks of a file system that is mounted.

use super::super::{Faults, FileState, State, Writer};
use std::{
    fs,
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

/// A tree whose /boot is a file system of its own, in a file whose bytes are what a disk would have.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// With a file that had all the time to settle; the error says what is missing here.
    fn new(make: &str, arguments: &[&str]) -> Result<Self, String> {
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
        disk.grub()?;
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

    /// The file as GRUB finds it at this moment; none where it finds none.
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

/// Longer than a block, so that part of it could be there.
fn text(word: &str) -> String {
    format!("# {word}\n").repeat(2_000)
}

fn file(word: &str) -> State {
    State::File(FileState::of_root(text(word), 0o644))
}

/// At each operation of a change, and at its end: GRUB finds the whole old file or the whole new one.
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

/// What is not of a boot loader is written as ever, and the look itself costs nothing.
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
