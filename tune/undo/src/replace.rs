//! Replaces what exists at a place, so that at any moment either the old or the new exists as a whole.

use super::{
    FileState, FileTime, HostError,
    early::Early,
    place::{CONTEXT, Place},
    store::hash_of,
    target::Faults,
};
use rustix::{
    fs::{self, AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags},
    io::Errno,
};
use std::{fs::File, io::Write, os::fd::OwnedFd};

/// Name of the new file until it is renamed. It is derived from the path, so that the leftover of a crash is
/// found and removed. Drop-in directories ignore names with a leading dot and this suffix.
fn temporary_name(place: &Place) -> String {
    beside(place, "tmp")
}

/// Second name of the old file while a boot loader may still use it: see [`super::early`].
pub(super) fn old_name(place: &Place) -> String {
    beside(place, "old")
}

fn beside(place: &Place, end: &str) -> String {
    let hash = hash_of(place.real.as_bytes());
    format!(".lowlat-{}.{end}", hash.get(..16).unwrap_or_default())
}

/// Opens a directory for fsync; the walk's own descriptors are for names only.
fn open_directory(place: &Place) -> Result<OwnedFd, HostError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    fs::openat(&place.dir, ".", flags, Mode::empty())
        .map_err(|e| HostError::io("open the directory of", &place.real, e))
}

fn sync_directory(faults: &Faults, place: &Place, dir: &OwnedFd) -> Result<(), HostError> {
    // File systems of the kernel have nothing to sync.
    faults.run("fsync the directory of", &place.real, || match fs::fsync(dir) {
        Err(Errno::INVAL) => Ok(()),
        synced => synced,
    })
}

/// Creates or replaces a file.
pub(super) fn with_file(faults: &Faults, place: &Place, file: &FileState) -> Result<(), HostError> {
    replace(faults, place, |temporary| write_beside(faults, place, temporary, file))
}

/// Creates or replaces a link.
pub(super) fn with_link(
    faults: &Faults,
    place: &Place,
    to: &str,
    (uid, gid): (u32, u32),
    mtime: Option<FileTime>,
    context: Option<&str>,
) -> Result<(), HostError> {
    let path = &place.real;
    replace(faults, place, |temporary| {
        faults.space("create a link", path).map_err(|e| HostError::io("create a link", path, e))?;
        let io = |doing| move |e: Errno| HostError::io(doing, path, e);
        fs::symlinkat(to, &place.dir, temporary).map_err(io("create a link"))?;
        let (owner, group) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        fs::chownat(&place.dir, temporary, owner, group, flags).map_err(io("set the owner of"))?;
        if let Some(context) = context {
            let link = place.path_of(temporary);
            attribute_set(path, fs::lsetxattr(link, CONTEXT, context.as_bytes(), XattrFlags::empty()))?;
        }
        if let Some(mtime) = mtime {
            fs::utimensat(&place.dir, temporary, &times(mtime), flags).map_err(io("set the time of"))?;
        }
        Ok(())
    })
}

/// Removes the file or link.
pub(super) fn with_nothing(faults: &Faults, place: &Place) -> Result<(), HostError> {
    if place.has_no_directory() {
        return Ok(());
    }
    clear(faults, place)?;
    let dir = open_directory(place)?;
    let early = Early::of(place, &dir);
    let removed = keep_old(faults, place, early.as_ref()).and_then(|()| {
        faults.run("remove", &place.real, || gone(fs::unlinkat(&dir, place.name.as_str(), AtFlags::empty())))
    });
    if let Err(error) = removed {
        // As in `replace`: the first error is more useful.
        let _ = clear(faults, place);
        return Err(error);
    }
    sync_directory(faults, place, &dir)?;
    give_back_old(faults, place, &dir, early.as_ref())
}

fn replace(
    faults: &Faults,
    place: &Place,
    write_new: impl FnOnce(&str) -> Result<(), HostError>,
) -> Result<(), HostError> {
    clear(faults, place)?;
    let dir = open_directory(place)?;
    let early = Early::of(place, &dir);
    let temporary = temporary_name(place);
    let ready = write_new(&temporary).and_then(|()| keep_old(faults, place, early.as_ref()));
    let moved = ready.and_then(|()| {
        faults.run("rename", &place.real, || {
            fs::renameat(&place.dir, temporary.as_str(), &place.dir, place.name.as_str())
        })
    });
    if let Err(error) = moved {
        // The first error is more useful than one of the cleanup, and the next attempt removes a leftover.
        let _ = clear(faults, place);
        return Err(error);
    }
    sync_directory(faults, place, &dir)?;
    give_back_old(faults, place, &dir, early.as_ref())
}

/// Gives the old file a second name, so that it stays complete while a boot loader may find it by its first
/// name, and writes all changes so far to their final place.
fn keep_old(faults: &Faults, place: &Place, early: Option<&Early<'_>>) -> Result<(), HostError> {
    let Some(early) = early else { return Ok(()) };
    faults.run("keep a second name of the old", &place.real, || {
        let flags = AtFlags::empty();
        gone(fs::linkat(&place.dir, place.name.as_str(), &place.dir, old_name(place).as_str(), flags))
    })?;
    early.settle(faults)
}

/// Removes the second name, once the first refers to the new file everywhere.
fn give_back_old(
    faults: &Faults,
    place: &Place,
    dir: &OwnedFd,
    early: Option<&Early<'_>>,
) -> Result<(), HostError> {
    let Some(early) = early else { return Ok(()) };
    early.settle(faults)?;
    clear(faults, place)?;
    sync_directory(faults, place, dir)
}

fn write_beside(faults: &Faults, place: &Place, temporary: &str, file: &FileState) -> Result<(), HostError> {
    let path = &place.real;
    let io = |doing| move |e: std::io::Error| HostError::io(doing, path, e);
    faults.space("create", path).map_err(io("create"))?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = fs::openat(&place.dir, temporary, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| HostError::io("create a file beside", path, e))?;
    let mut new = File::from(new);
    faults.write(path, &file.bytes, |bytes| new.write_all(bytes)).map_err(io("write"))?;
    faults.run("set owner and mode of", path, || {
        // The owner first: changing it clears the set-user-ID bit.
        fs::fchown(&new, Some(Uid::from_raw(file.uid)), Some(Gid::from_raw(file.gid)))?;
        fs::fchmod(&new, Mode::from_raw_mode(file.mode & 0o7777))
    })?;
    for (name, value) in &file.xattrs {
        attribute_set(path, fs::fsetxattr(&new, name.as_str(), value, XattrFlags::empty()))?;
    }
    if let Some(mtime) = file.mtime {
        faults.run("set the time of", path, || fs::futimens(&new, &times(mtime)))?;
    }
    faults.run("fsync", path, || fs::fsync(&new))
}

/// Not every attribute that can be read can be set: not by a user, in a container, or on another file system.
fn attribute_set(path: &str, result: Result<(), Errno>) -> Result<(), HostError> {
    match result {
        Ok(()) | Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP) => Ok(()),
        Err(errno) => Err(HostError::io("set an extended attribute of", path, errno)),
    }
}

fn times(mtime: FileTime) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanoseconds },
    }
}

/// Removes the new file of an interrupted attempt.
pub(super) fn clear(faults: &Faults, place: &Place) -> Result<(), HostError> {
    for name in [temporary_name(place), old_name(place)] {
        match fs::statat(&place.dir, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            _ => faults.run("remove the leftover of", &place.real, || {
                gone(fs::unlinkat(&place.dir, name.as_str(), AtFlags::empty()))
            })?,
        }
    }
    Ok(())
}

/// Makes the present state of the place durable.
pub(super) fn settle(faults: &Faults, place: &Place) -> Result<(), HostError> {
    clear(faults, place)?;
    let is_file =
        place.stat()?.is_some_and(|s| fs::FileType::from_raw_mode(s.st_mode) == fs::FileType::RegularFile);
    if is_file && let Some(file) = place.open_to_read()? {
        faults.run("fsync", &place.real, || fs::fsync(&file))?;
    }
    sync_directory(faults, place, &open_directory(place)?)
}

/// Creates the missing directories above the place, and moves into the last one.
pub(super) fn make_directories(faults: &Faults, place: &mut Place) -> Result<(), HostError> {
    for (name, path) in place.missing.clone().iter().zip(place.missing_paths()) {
        faults.space("mkdir", &path).map_err(|e| HostError::io("create the directory", &path, e))?;
        match fs::mkdirat(&place.dir, name.as_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                // The umask may have cleared bits.
                fs::chmodat(&place.dir, name.as_str(), Mode::from_raw_mode(0o755), AtFlags::empty())
                    .map_err(|e| HostError::io("set the mode of", &path, e))?;
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(HostError::io("create the directory", &path, errno)),
        }
        sync_directory(faults, place, &open_directory(place)?)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        place.dir = fs::openat(&place.dir, name.as_str(), flags, Mode::empty())
            .map_err(|e| HostError::io("open the directory", &path, e))?;
    }
    place.missing.clear();
    Ok(())
}

/// Removes an empty directory; `false` if it is not empty.
pub(super) fn remove_directory(faults: &Faults, place: &Place) -> Result<bool, HostError> {
    let path = &place.real;
    faults.step("rmdir", path).map_err(|e| HostError::io("remove the directory", path, e))?;
    match fs::unlinkat(&place.dir, place.name.as_str(), AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(false),
        Err(errno) => return Err(HostError::io("remove the directory", path, errno)),
    }
    sync_directory(faults, place, &open_directory(place)?)?;
    Ok(true)
}

fn gone(result: Result<(), Errno>) -> Result<(), Errno> {
    if result == Err(Errno::NOENT) { Ok(()) } else { result }
}
