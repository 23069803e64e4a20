//! The location of tracefs on the running host, and access to its files. The only place that joins its paths.

use super::{TraceError, error::WITHOUT};
use lowlat_host::Unparsable;
use rustix::{
    fd::{AsFd, AsRawFd, OwnedFd},
    fs::{Access, access, statfs},
    io::Errno,
    mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen},
};
use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::Path,
};

/// `TRACEFS_MAGIC` (include/uapi/linux/magic.h).
const TRACEFS_MAGIC: u64 = 0x7472_6163;
/// Its mount points: since Linux 4.1, and before that below debugfs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Bytes requested at once, and the maximum of one file. `events/header_page` and `events/header_event`
/// answer only the first read, so this must be large enough for all of them (kernel: `show_header` in
/// trace_events.c).
const READ_BYTES: usize = 64 << 10;
const FILE_BYTES_MAX: usize = 4 << 20;

/// The making of an instance, in messages.
pub(super) const MAKE: &str = "create the trace instance";

/// The tracefs of the running host.
#[derive(Debug)]
pub struct Tracefs {
    /// Prefix of all its paths.
    base: String,
    /// Name shown in error messages.
    label: String,
    /// A mount that is in no mount table and ends with this descriptor.
    _mount: Option<OwnedFd>,
}

impl Tracefs {
    /// Uses the host's mount if there is one; otherwise creates a private mount, which nothing else sees and
    /// which ends with this value.
    ///
    /// # Errors
    /// [`TraceError`] if this user may not use it, if it is read-only, or if the kernel has none.
    pub fn find() -> Result<Self, TraceError> {
        for place in PLACES {
            match statfs(place) {
                Ok(facts) if u64::try_from(facts.f_type) == Ok(TRACEFS_MAGIC) => {
                    return Self::at(place, place, None).checked();
                }
                // Not mounted here, or a directory in the path that this user may not enter.
                _ => {}
            }
        }
        Self::detached()
    }

    /// Creates a private mount, which is in no mount table.
    ///
    /// # Errors
    /// [`TraceError`] if the kernel has no tracefs, or this user may not mount it.
    pub fn detached() -> Result<Self, TraceError> {
        let mount = mount_detached().map_err(|error| match error {
            Errno::NODEV => TraceError::not_in_kernel(),
            Errno::PERM | Errno::ACCESS => TraceError::cannot("use", "mount of tracefs", &error.into()),
            other => TraceError(format!(
                "tracefs is not mounted, and mounting it for this process failed: {}; run \"mount -t tracefs tracefs \
                 /sys/kernel/tracing\" as root, or {WITHOUT}",
                io::Error::from(other)
            )),
        })?;
        let base = format!("/proc/self/fd/{}", mount.as_raw_fd());
        Self::at(&base, "tracefs", Some(mount)).checked()
    }

    /// Treats the directory `base` as tracefs.
    pub(super) fn at(base: &str, label: &str, mount: Option<OwnedFd>) -> Self {
        Self { base: base.into(), label: label.into(), _mount: mount }
    }

    /// Returns this tracefs if instances can be created in it.
    fn checked(self) -> Result<Self, TraceError> {
        match access(self.path("instances"), Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => Ok(self),
            Err(Errno::NOENT) => Err(TraceError::not_in_kernel()),
            Err(error) => Err(TraceError::cannot(MAKE, &self.shown("instances"), &error.into())),
        }
    }

    pub(super) fn path(&self, relative: &str) -> String {
        format!("{}/{relative}", self.base)
    }

    /// The path as shown in messages.
    pub(super) fn shown(&self, relative: &str) -> String {
        format!("{}/{relative}", self.label)
    }

    pub(super) fn exists(&self, relative: &str) -> bool {
        Path::new(&self.path(relative)).exists()
    }

    /// The names in a directory, sorted; empty if it cannot be read.
    pub(super) fn list(&self, relative: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path(relative)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A file's text without trailing white space.
    ///
    /// # Errors
    /// The system's error, or that it is not text.
    pub(super) fn text(&self, relative: &str) -> io::Result<String> {
        let mut file = self.open(relative, File::options().read(true))?;
        let (mut bytes, mut chunk) = (Vec::new(), vec![0; READ_BYTES]);
        while bytes.len() < FILE_BYTES_MAX {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let raw = String::from_utf8_lossy(error.as_bytes());
            let found = Unparsable::new(self.shown(relative), &raw, "text in UTF-8");
            io::Error::new(io::ErrorKind::InvalidData, found.to_string())
        })?;
        Ok(text.trim_end().to_owned())
    }

    /// The text of a file that must exist.
    pub(super) fn read(&self, relative: &str) -> Result<String, TraceError> {
        self.text(relative).map_err(|source| TraceError::cannot("read", &self.shown(relative), &source))
    }

    /// Writes a value in one call, as tracefs requires.
    pub(super) fn write(&self, relative: &str, value: &str) -> Result<(), TraceError> {
        let result =
            self.open(relative, File::options().write(true)).and_then(|file| write_whole(&file, value));
        let doing = || format!("write \"{value}\" to");
        result.map_err(|source| TraceError::cannot(&doing(), &self.shown(relative), &source))
    }

    pub(super) fn open(&self, relative: &str, options: &fs::OpenOptions) -> io::Result<File> {
        options.open(self.path(relative))
    }
}

/// Writes with one call; the kernel accepts a value completely or not at all.
pub(super) fn write_whole(mut file: &File, value: &str) -> io::Result<()> {
    if file.write(value.as_bytes())? == value.len() {
        Ok(())
    } else {
        Err(io::Error::other("the kernel accepted only a part of it"))
    }
}

fn mount_detached() -> Result<OwnedFd, Errno> {
    let filesystem = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(filesystem.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(filesystem.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}
