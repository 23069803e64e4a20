//! Files through links, into pipes, over existing files, and in changing directories.

use super::*;
use std::{
    fs as std_fs,
    os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

/// A user that owns nothing.
const STRANGER: u32 = 65_534;

fn written(path: &Path) -> Result<(), OutputError> {
    OutputFile::new(path, FileAccess::Shared)?.write(b"new")
}

fn names(directory: &Path) -> Vec<String> {
    let name = |entry: io::Result<std_fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = std_fs::read_dir(directory).unwrap().map(name).collect();
    names.sort();
    names
}

/// True if this test can act for another user; otherwise prints that it is skipped.
fn is_root(test: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: {test}: only root can create files of another user");
    }
    is_root
}

#[test]
fn a_file_is_replaced_whole_and_nothing_is_left_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    std_fs::write(&path, "older and longer").unwrap();
    let file = OutputFile::new(&path, FileAccess::Shared).unwrap();
    assert!(file.exists() && file.replaces());
    file.check().unwrap();
    assert_eq!(std_fs::read(&path).unwrap(), b"older and longer", "checking changes nothing");
    let mut unfinished = file.create().unwrap();
    unfinished.write_all(b"half").unwrap();
    drop(unfinished);
    assert_eq!(std_fs::read(&path).unwrap(), b"older and longer");
    file.write(b"new").unwrap();
    assert_eq!(std_fs::read(&path).unwrap(), b"new");
    let error = file.write_new(b"newer").unwrap_err();
    assert!(error.is_taken(), "{error}");
    assert_eq!(names(folder.path()), ["plan.json"]);
}

#[test]
fn a_new_file_never_replaces_one_that_came_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page");
    let file = OutputFile::new(&path, FileAccess::Shared).unwrap();
    let unfinished = file.create().unwrap();
    std_fs::write(&path, "theirs").unwrap();
    assert!(unfinished.finish_new().unwrap_err().is_taken());
    assert_eq!(std_fs::read(&path).unwrap(), b"theirs");
    assert_eq!(names(folder.path()), ["page"]);
}

#[test]
fn private_files_are_their_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.csv");
    std_fs::write(&path, "old").unwrap();
    std_fs::set_permissions(&path, std_fs::Permissions::from_mode(0o666)).unwrap();
    OutputFile::new(&path, FileAccess::Private).unwrap().write(b"new").unwrap();
    assert_eq!(std_fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_link_in_the_last_place_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, link) = (folder.path().join("victim"), folder.path().join("page.html"));
    std_fs::write(&victim, "theirs").unwrap();
    for to in [victim.as_path(), Path::new("/dev/null"), Path::new("missing")] {
        symlink(to, &link).unwrap();
        let error = written(&link).unwrap_err();
        assert!(error.to_string().contains("does not write through links"), "{error}");
        assert!(error.hint().unwrap().contains(to.to_str().unwrap()));
        assert!(OutputFile::new(&link, FileAccess::Shared).unwrap().create_in_place().is_err());
        std_fs::remove_file(&link).unwrap();
    }
    assert_eq!(std_fs::read(&victim).unwrap(), b"theirs");
    assert_eq!(names(folder.path()), ["victim"]);
}

#[test]
fn a_hard_link_loses_its_name_and_keeps_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let (victim, page) = (folder.path().join("victim"), folder.path().join("page.html"));
    std_fs::write(&victim, "theirs").unwrap();
    std_fs::hard_link(&victim, &page).unwrap();
    written(&page).unwrap();
    std_fs::remove_file(&page).unwrap();
    std_fs::hard_link(&victim, &page).unwrap();
    OutputFile::new(&page, FileAccess::Shared).unwrap().create_in_place().unwrap().write_all(b"new").unwrap();
    assert_eq!(std_fs::read(&victim).unwrap(), b"theirs");
}

#[test]
fn pipes_and_devices_are_written_into_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    fs::mknodat(fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let file = OutputFile::new(&pipe, FileAccess::Shared).unwrap();
    file.check().unwrap();
    let reader = thread::spawn({
        let pipe = pipe.clone();
        move || std_fs::read(pipe).unwrap()
    });
    file.write(b"new").unwrap();
    assert_eq!(reader.join().unwrap(), b"new");
    assert!(file.create_in_place().is_err());
    written(Path::new("/dev/null")).unwrap();
    let full = written(Path::new("/dev/full")).unwrap_err();
    assert!(full.to_string().contains("No space left on device"), "{full}");
    for path in ["/dev/null", "/dev/full"] {
        assert!(!std_fs::symlink_metadata(path).unwrap().is_file());
    }
}

#[test]
fn descriptors_of_this_process_are_known_by_their_paths() {
    for path in ["/dev/stdout", "/dev/stderr", "/dev/fd/63", "/proc/self/fd/1"] {
        assert!(is_descriptor(Path::new(path)), "{path}");
    }
    for path in ["/dev/stdin", "/dev/null", "stdout", "/proc/self/fd/x", "/proc/1/fd/1", "/tmp/dev/stdout"] {
        assert!(!is_descriptor(Path::new(path)), "{path}");
    }
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"head ").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    written(Path::new(&format!("/dev/fd/{number}"))).unwrap();
    let mut text = String::new();
    io::Seek::rewind(&mut file).unwrap();
    io::Read::read_to_string(&mut file, &mut text).unwrap();
    assert_eq!(text, "head new");
}

#[test]
fn what_is_not_a_file_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std_fs::write(path("file"), "").unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    for (given, cause) in [
        (folder.path().to_owned(), "Is a directory"),
        (path("missing/page"), "No such file"),
        (path("file/page"), "Not a directory"),
        (path("page/"), "no file name"),
        (path(".."), "no file name"),
        (path("socket"), "not a file, a pipe"),
    ] {
        let error = written(&given).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot write {}: ", given.display())), "{error}");
        assert!(error.contains(cause), "{error}");
    }
    assert_eq!(names(folder.path()), ["file", "socket"]);
}

#[test]
fn own_links_on_the_way_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std_fs::create_dir_all(at("real/below")).unwrap();
    symlink("real", at("relative")).unwrap();
    symlink(at("relative/below"), at("absolute")).unwrap();
    symlink("loop", at("loop")).unwrap();
    written(&at("relative/page")).unwrap();
    written(&at("absolute/../below/page")).unwrap();
    assert_eq!(names(&at("real")), ["below", "page"]);
    assert_eq!(names(&at("real/below")), ["page"]);
    assert!(written(&at("loop/page")).is_err());
    let made = OutputDirectory::create(&at("relative/new/deeper")).unwrap();
    made.file(OsStr::new("page"), FileAccess::Shared).write(b"new").unwrap();
    assert_eq!(names(&at("real/new/deeper")), ["page"]);
}

#[test]
fn a_strangers_link_leads_to_the_strangers_directories_only() {
    if !is_root("a_strangers_link_leads_to_the_strangers_directories_only") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std_fs::create_dir_all(at("etc")).unwrap();
    std_fs::create_dir_all(at("theirs")).unwrap();
    lchown(at("theirs"), Some(STRANGER), None).unwrap();
    for (name, to) in [("bad", "etc"), ("good", "theirs")] {
        symlink(at(to), at(name)).unwrap();
        lchown(at(name), Some(STRANGER), None).unwrap();
    }
    let error = written(&at("bad/page")).unwrap_err().to_string();
    assert!(error.contains("is a link of user 65534"), "{error}");
    assert!(OutputDirectory::create(&at("bad/cron.d")).is_err());
    assert_eq!(names(&at("etc")), [""; 0]);
    written(&at("good/page")).unwrap();
    OutputDirectory::create(&at("good/new")).unwrap();
    assert_eq!(names(&at("theirs")), ["new", "page"]);
}

/// The owner of a directory swaps it with a link to another one, as fast as possible.
#[test]
fn a_directory_that_is_swapped_leads_nowhere_else() {
    if !is_root("a_directory_that_is_swapped_leads_nowhere_else") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std_fs::create_dir_all(at("etc")).unwrap();
    std_fs::create_dir_all(at("theirs")).unwrap();
    symlink(at("etc"), at("link")).unwrap();
    lchown(at("link"), Some(STRANGER), None).unwrap();
    lchown(at("theirs"), Some(STRANGER), None).unwrap();
    let ends = AtomicBool::new(false);
    let count = thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: an independent flag.
            while !ends.load(Ordering::Relaxed) {
                fs::renameat_with(fs::CWD, at("theirs"), fs::CWD, at("link"), RenameFlags::EXCHANGE).unwrap();
            }
        });
        let count = (0..300).filter(|_| written(&at("theirs/page")).is_ok()).count();
        // Relaxed: the scope joins the thread.
        ends.store(true, Ordering::Relaxed);
        count
    });
    assert_eq!(names(&at("etc")), [""; 0], "{count} files were written");
}
