//! Paths that no other user can change or redirect.
//!
//! A run that its user shares with a group is the exception, and only for processes that name that group.
//!
//! Each level is opened relative to the one above it, without following links, and must belong to this user or
//! to root. In directories that other users may write, the sticky bit must keep them from replacing entries, as
//! in /tmp. A path that passes stays valid, so it can be used by name afterwards. Root, this user's processes,
//! and the owner of `/` are trusted.

use crate::Refusal;
use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, statat},
    io::Errno,
    process::geteuid,
};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
};

/// Mode bits that let other users write.
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;
const SOCKET_HINT: &str = "name the socket of a running master: master.sock in its run folder";

/// A system error; `doing` names the attempted operation.
pub fn refused(path: &Path, doing: &str, source: impl Into<io::Error>) -> Refusal {
    let source = source.into();
    let hint = "use a directory that this user can write, on a disk with free space; XDG_RUNTIME_DIR names that of run folders";
    failed(path, doing, &source, hint)
}

fn failed(path: &Path, doing: &str, source: &io::Error, hint: &str) -> Refusal {
    // Quoted if there is anything in it that is not shown as it is.
    let shown = path.to_str().filter(|text| !text.contains(char::is_control)).map(str::to_owned);
    let shown = shown.unwrap_or_else(|| format!("{:?}", path.as_os_str().to_string_lossy()));
    let words = format!("cannot {doing} {shown}: {source}\nhint: {hint}");
    Refusal::path(words, source.kind() == io::ErrorKind::NotFound)
}

/// Creates a private directory, with missing levels above it. Returns it if it is private.
pub fn make(path: &Path) -> Result<OwnedFd, Refusal> {
    private(path, walk(path, true)?)
}

/// Opens a directory if it is private: owned by this user, and writable by nobody else.
pub fn open(path: &Path) -> Result<OwnedFd, Refusal> {
    private(path, walk(path, false)?)
}

/// Creates a directory inside a private one.
pub fn make_inside(directory: impl AsFd, path: &Path) -> Result<OwnedFd, Refusal> {
    private(path, step(directory, name_of(path), path, true)?)
}

/// Opens a file of a private directory, or creates it according to `flags`. Links are not followed; anything
/// but this user's private file is refused. Others may not write the file afterwards.
pub fn file(directory: impl AsFd, path: &Path, flags: OFlags) -> Result<File, Refusal> {
    // Non-blocking: a pipe would wait for its other end.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(directory.as_fd(), name_of(path), flags, Mode::RUSR | Mode::WUSR);
    let fd = match opened {
        Err(errno @ (Errno::LOOP | Errno::ISDIR | Errno::NXIO)) => {
            let stat = statat(directory, name_of(path), AtFlags::SYMLINK_NOFOLLOW);
            stat.map_or(Ok(()), |stat| expect(path, &stat, FileType::RegularFile, "a file"))?;
            return Err(refused(path, "open", errno));
        }
        opened => opened.map_err(|errno| refused(path, "open", errno))?,
    };
    let stat = fstat(&fd).map_err(|errno| refused(path, "inspect", errno))?;
    expect(path, &stat, FileType::RegularFile, "a file")?;
    if stat.st_nlink > 1 {
        return Err(other_kind(path, "a file with other names", "one with this name only"));
    }
    expect_owner(path, &stat)?;
    if stat.st_mode & WRITABLE != 0 {
        let mode = Mode::from_raw_mode(stat.st_mode & !WRITABLE);
        fchmod(&fd, mode).map_err(|errno| refused(path, "protect", errno))?;
    }
    Ok(fd.into())
}

/// Variable of the environment that names a group whose members this process trusts: it joins their runs too.
pub const TRUSTED_GROUP: &str = "LOWLAT_GROUP";
/// The system's groups (group(5)).
const GROUPS: &str = "/etc/group";

/// Id of a group, given by name or as a number.
pub fn group_id(name: &str) -> Result<u32, Refusal> {
    group_in(Path::new(GROUPS), name)
}

fn group_in(groups: &Path, name: &str) -> Result<u32, Refusal> {
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    };
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let hint = "give the number of the group";
    let text = std::fs::read_to_string(groups).map_err(|error| failed(groups, "read", &error, hint))?;
    let known = text.lines().find_map(of_line);
    known.ok_or_else(|| Refusal::new(format!("no group {name:?} in {}\nhint: {hint}", groups.display())))
}

/// Checks that no other user can have created this socket here. Returns the user who shares it with the group that this
/// process trusts ([`TRUSTED_GROUP`]), if it is another user's.
pub fn check_socket(path: &Path) -> Result<Option<u32>, Refusal> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.as_os_str().as_bytes().contains(&0) {
        let source = io::Error::other("a path cannot contain a NUL character");
        return Err(failed(path, "use the socket", &source, SOCKET_HINT));
    }
    let member = sharing_user(folder)?;
    let directory = walk_with(folder, false, member.map(|(user, _)| user))?;
    if let Some((user, group)) = member {
        // The same directory as was looked at before.
        let stat = fstat(&directory).map_err(|errno| refused(folder, "inspect", errno))?;
        if (stat.st_uid, stat.st_gid) != (user, group) {
            expect_trusted_owner(folder, &stat, root_of_namespace())?;
        }
    }
    let stat = statat(directory, name_of(path), AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| failed(path, "use the socket", &errno.into(), SOCKET_HINT))?;
    expect(path, &stat, FileType::Socket, "a master's socket")?;
    let member = member.map(|(user, _)| user);
    expect_one_of(path, &stat, &[0, geteuid().as_raw(), root_of_namespace(), member.unwrap_or(0)])?;
    Ok(member)
}

/// The owner and the group of a folder of another user, if this process trusts that group.
fn sharing_user(folder: &Path) -> Result<Option<(u32, u32)>, Refusal> {
    let Some(name) = std::env::var(TRUSTED_GROUP).ok().filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let group = group_id(&name)?;
    let stat = statat(CWD, folder, AtFlags::SYMLINK_NOFOLLOW).ok();
    let is_other = |stat: &Stat| stat.st_gid == group && ![0, geteuid().as_raw()].contains(&stat.st_uid);
    Ok(stat.filter(is_other).map(|stat| (stat.st_uid, group)))
}

/// Opens a file that any user may have created, for reading. Links are not followed, and only regular files are
/// opened.
pub fn foreign_file(path: &Path) -> Result<File, Refusal> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(CWD, path, flags, Mode::empty()).map_err(|errno| refused(path, "open", errno))?;
    let stat = fstat(&fd).map_err(|errno| refused(path, "inspect", errno))?;
    expect(path, &stat, FileType::RegularFile, "a file")?;
    Ok(fd.into())
}

/// Opens each level of a path.
fn walk(path: &Path, is_made: bool) -> Result<OwnedFd, Refusal> {
    walk_with(path, is_made, None)
}

/// The same, where levels may also belong to this user.
fn walk_with(path: &Path, is_made: bool, also: Option<u32>) -> Result<OwnedFd, Refusal> {
    let check_level = |path: &Path, directory: &OwnedFd| check_level(path, directory, also);
    let path = std::path::absolute(path).map_err(|error| refused(path, "find", error))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = PathBuf::from("/");
    let mut directory =
        openat(CWD, &at, flags, Mode::empty()).map_err(|errno| refused(&at, "open", errno))?;
    for level in path.components().filter(|level| !matches!(level, Component::RootDir | Component::CurDir)) {
        check_level(&at, &directory)?;
        at.push(level);
        directory = step(&directory, level.as_os_str(), &at, is_made)?;
    }
    check_level(&at, &directory)?;
    Ok(directory)
}

/// Opens one level, and creates it first if allowed.
fn step(directory: impl AsFd, name: &OsStr, path: &Path, is_made: bool) -> Result<OwnedFd, Refusal> {
    let open = |more: OFlags| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
        openat(directory.as_fd(), name, flags, Mode::empty())
    };
    let mut opened = open(OFlags::NOFOLLOW);
    if is_made && opened.as_ref().err() == Some(&Errno::NOENT) {
        match mkdirat(directory.as_fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(refused(path, "make", errno)),
        }
        opened = open(OFlags::NOFOLLOW);
    }
    let Err(errno @ (Errno::NOTDIR | Errno::LOOP)) = opened else {
        return opened.map_err(|errno| refused(path, "open", errno));
    };
    let stat = statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| refused(path, "inspect", errno))?;
    let above = fstat(directory.as_fd()).map_err(|errno| refused(path, "inspect", errno))?;
    // A system link, such as /var/run: only root can have created it. Its target is checked like any level.
    let is_system = [stat.st_uid, above.st_uid].iter().all(|uid| *uid == root_of_namespace())
        && above.st_mode & WRITABLE == 0
        && FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    if is_system {
        return open(OFlags::empty()).map_err(|errno| refused(path, "open", errno));
    }
    expect(path, &stat, FileType::Directory, "a directory")?;
    Err(refused(path, "open", errno))
}

/// Checks a level above the target.
fn check_level(path: &Path, directory: &OwnedFd, also: Option<u32>) -> Result<(), Refusal> {
    let stat = fstat(directory).map_err(|errno| refused(path, "inspect", errno))?;
    if also != Some(stat.st_uid) {
        expect_trusted_owner(path, &stat, root_of_namespace())?;
    }
    if stat.st_mode & WRITABLE != 0 && stat.st_mode & STICKY == 0 {
        return Err(writable(path, &stat));
    }
    Ok(())
}

/// Checks a directory in which this user creates files.
fn private(path: &Path, directory: OwnedFd) -> Result<OwnedFd, Refusal> {
    let stat = fstat(&directory).map_err(|errno| refused(path, "inspect", errno))?;
    expect_owner(path, &stat)?;
    if stat.st_mode & WRITABLE != 0 { Err(writable(path, &stat)) } else { Ok(directory) }
}

fn expect_owner(path: &Path, stat: &Stat) -> Result<(), Refusal> {
    expect_one_of(path, stat, &[geteuid().as_raw()])
}

fn expect_trusted_owner(path: &Path, stat: &Stat, root: u32) -> Result<(), Refusal> {
    expect_one_of(path, stat, &[0, geteuid().as_raw(), root])
}

fn expect_one_of(path: &Path, stat: &Stat, owners: &[u32]) -> Result<(), Refusal> {
    if owners.contains(&stat.st_uid) {
        return Ok(());
    }
    let words = format!(
        "cannot use {}: it belongs to user {}, expected user {} or root\nhint: remove it, or use a directory of your own, for example with XDG_RUNTIME_DIR",
        path.display(),
        stat.st_uid,
        geteuid().as_raw()
    );
    Err(Refusal::path(words, false))
}

fn expect(path: &Path, stat: &Stat, kind: FileType, expected: &'static str) -> Result<(), Refusal> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        found if found == kind => return Ok(()),
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        FileType::RegularFile => "a file",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(other_kind(path, found, expected))
}

fn other_kind(path: &Path, found: &str, expected: &str) -> Refusal {
    let path = path.display();
    Refusal::path(
        format!("cannot use {path}: found {found}, expected {expected}\nhint: name another path"),
        false,
    )
}

fn writable(path: &Path, stat: &Stat) -> Refusal {
    let (path, mode) = (path.display(), stat.st_mode & 0o7777);
    let words = format!(
        "cannot use {path}: other users can write it (mode {mode:o})\nhint: chmod go-w {path}, after checking what it contains"
    );
    Refusal::path(words, false)
}

/// The owner of `/`: root, which has another number in a user namespace.
fn root_of_namespace() -> u32 {
    rustix::fs::stat("/").map_or(0, |stat| stat.st_uid)
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or(OsStr::from_bytes(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn levels_are_created_private() {
        let folder = folder();
        let path = folder.path().join("a/b/c");
        assert!(open(&path).unwrap_err().is_absent());
        make(&path).unwrap();
        make(&path).unwrap();
        open(&path).unwrap();
        for level in ["a", "a/b", "a/b/c"] {
            assert_eq!(fs::metadata(folder.path().join(level)).unwrap().permissions().mode() & 0o7777, 0o700);
        }
    }

    #[test]
    fn groups_that_were_not_read_are_not_absent() {
        let folder = folder();
        let groups = folder.path().join("group");
        let group = |name| group_in(&groups, name).map_err(|error| error.to_string());
        assert_eq!(group("70"), Ok(70));
        assert!(group("desk").unwrap_err().starts_with("cannot read"));
        fs::write(&groups, "root:x:0:\ndesk:x:1000:ann,bob\nbroken:x\n").unwrap();
        assert_eq!((group("desk"), group("root")), (Ok(1000), Ok(0)));
        for name in ["des", "broken", "ann"] {
            assert!(group(name).unwrap_err().starts_with(&format!("no group \"{name}\" in ")), "{name}");
        }
    }

    #[test]
    fn links_at_any_level_are_refused() {
        let folder = folder();
        let real = folder.path().join("real");
        make(&real.join("run")).unwrap();
        symlink(&real, folder.path().join("link")).unwrap();
        symlink(real.join("run"), real.join("last")).unwrap();
        symlink("nowhere", real.join("dangling")).unwrap();
        if geteuid().is_root() {
            // Root's links belong to the system.
            make(&folder.path().join("link/run")).unwrap();
            for link in ["link", "real/last", "real/dangling"] {
                std::os::unix::fs::lchown(folder.path().join(link), Some(65534), None).unwrap();
            }
        }
        for path in ["link/run", "link/new", "real/last", "real/dangling"] {
            let error = make(&folder.path().join(path)).unwrap_err().to_string();
            assert!(error.contains("found a symbolic link, expected a directory"), "{path}: {error}");
        }
        assert!(!real.join("new").exists());
    }

    #[test]
    fn paths_that_others_can_write_are_refused_except_in_sticky_directories() {
        let folder = folder();
        let shared = folder.path().join("shared");
        make(&shared.join("run")).unwrap();
        for mode in [0o770, 0o702, 0o777] {
            chmod(&shared, mode);
            let error = open(&shared.join("run")).unwrap_err().to_string();
            assert!(error.contains(&format!("(mode {mode:o})")) && error.contains("chmod go-w"), "{error}");
        }
        chmod(&shared, 0o1777);
        open(&shared.join("run")).unwrap();
        chmod(&shared.join("run"), 0o1777);
        let error = open(&shared.join("run")).unwrap_err().to_string();
        assert!(error.contains("run: other users can write it"), "its files are created in it: {error}");
    }

    #[test]
    fn only_files_with_a_single_name_are_opened() {
        let folder = folder();
        let inside = |name: &str| folder.path().join(name);
        let directory = open(folder.path()).unwrap();
        let open = |name: &str| file(&directory, &inside(name), OFlags::RDWR | OFlags::CREATE);
        open("new").unwrap();
        assert_eq!(fs::metadata(inside("new")).unwrap().permissions().mode() & 0o7777, 0o600);
        fs::create_dir(inside("directory")).unwrap();
        symlink(inside("new"), inside("link")).unwrap();
        fs::write(inside("two"), "").unwrap();
        fs::hard_link(inside("two"), inside("names")).unwrap();
        rustix::fs::mknodat(CWD, inside("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for (name, found) in [
            ("directory", "a directory"),
            ("link", "a symbolic link"),
            ("names", "a file with other names"),
            ("pipe", "a pipe"),
        ] {
            let error = open(name).unwrap_err().to_string();
            assert!(error.contains(&format!("found {found}")), "{name}: {error}");
        }
        chmod(&inside("new"), 0o666);
        open("new").unwrap();
        assert_eq!(fs::metadata(inside("new")).unwrap().permissions().mode() & 0o7777, 0o644);
    }

    #[test]
    fn other_users_folders_are_refused_by_every_function() {
        if !geteuid().is_root() {
            eprintln!(
                "skipped: other_users_folders_are_refused_by_every_function: only root can create another user's folder"
            );
            return;
        }
        let folder = folder();
        let path = folder.path().join("theirs/run");
        make(&path).unwrap();
        let give = |path: &Path| std::os::unix::fs::chown(path, Some(65534), None).unwrap();
        give(&path);
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("it belongs to user 65534"), "{error}");
        give(path.parent().unwrap());
        let error = make(&path.join("deeper")).unwrap_err().to_string();
        assert!(error.contains("theirs: it belongs to user 65534, expected user 0 or root"), "{error}");
    }
}
