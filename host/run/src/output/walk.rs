//! From a path to a directory held open.
//!
//! Links in the path are followed if root or this user owns them. A link of another user may only lead to a
//! directory of that same user. So root running lowlat in another user's directory does not lend that user
//! its privileges.

use super::OutputCause;
use rustix::{
    fs::{self, FileType, Mode, OFlags},
    io::Errno,
    process::geteuid,
};
use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path},
};

/// Maximum number of links followed; the kernel's own limit.
const LINKS_MAX: usize = 40;

/// A link of an untrusted user.
struct Foreign {
    name: OsString,
    to: OsString,
    owner: u32,
}

/// Opens a directory; an empty path is the working directory. Creates missing directories if `creates` is
/// set.
pub(super) fn directory(path: &Path, creates: bool) -> Result<OwnedFd, OutputCause> {
    let io = |error: Errno| OutputCause::Io(error.into());
    let mut here = open(None, OsStr::new(if path.is_absolute() { "/" } else { "." })).map_err(io)?;
    let mut pending = names(path);
    let (mut links, mut foreign) = (0, Vec::new());
    while let Some(name) = pending.pop() {
        let found = match open(Some(&here), &name) {
            Err(Errno::NOENT) if creates => {
                // Checked before anything is created, not only at the end. Directories created below belong
                // to this user.
                check(&here, &mut foreign)?;
                match fs::mkdirat(&here, name.as_os_str(), Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open(Some(&here), &name),
                    Err(error) => Err(error),
                }
            }
            found => found,
        }
        .map_err(io)?;
        let stat = fs::fstat(&found).map_err(io)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => here = found,
            FileType::Symlink => {
                links += 1;
                if links > LINKS_MAX {
                    return Err(io(Errno::LOOP));
                }
                let to = fs::readlinkat(&found, "", Vec::new()).map_err(io)?.into_bytes();
                let to = OsString::from_vec(to);
                if Path::new(&to).is_absolute() {
                    here = open(None, OsStr::new("/")).map_err(io)?;
                }
                pending.extend(names(Path::new(&to)));
                if stat.st_uid != 0 && stat.st_uid != geteuid().as_raw() {
                    foreign.push(Foreign { name, to, owner: stat.st_uid });
                }
            }
            _ => return Err(io(Errno::NOTDIR)),
        }
    }
    check(&here, &mut foreign)?;
    Ok(here)
}

/// Rejects links of users who do not own the directory that they led to. Forgets the valid links.
fn check(here: &OwnedFd, foreign: &mut Vec<Foreign>) -> Result<(), OutputCause> {
    let owner = fs::fstat(here).map_err(|error| OutputCause::Io(error.into()))?.st_uid;
    match foreign.drain(..).find(|link| link.owner != owner) {
        None => Ok(()),
        Some(Foreign { name, to, owner }) => Err(OutputCause::ForeignLink {
            name: name.to_string_lossy().into_owned(),
            to: to.to_string_lossy().into_owned(),
            owner,
        }),
    }
}

/// The names of a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(name).collect()
}

fn open(dir: Option<&OwnedFd>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match dir {
        Some(dir) => fs::openat(dir, name.as_bytes(), flags, Mode::empty()),
        None => fs::open(name.as_bytes(), flags, Mode::empty()),
    }
}
