//! Files that a boot loader reads, before any kernel runs.
//!
//! GRUB reads ext4 and XFS without their journals. fsync(2) and syncfs(2) ensure that the journal has a
//! change, and the kernel moves it to its final place some seconds later. If the power fails in between, the
//! next kernel replays the journal and finds the new file. GRUB runs before that, and finds the directory and
//! the file in states from different moments: an empty grub.cfg, and a prompt on a console without a user.
//!
//! So a file that is read early is replaced in steps, each written to its final place before the next:
//!
//! ```text
//! write the new one beside, and give the old one a second name     journal emptied
//! move the new one into its place                                  journal emptied
//! take the second name away
//! ```
//!
//! The directory then always refers to a complete old or new file: the new inode is in its place before a
//! name refers to it, and the old one is freed only when no name does.
//!
//! ext4's journal is emptied by an ioctl (Linux 5.14, `EXT4_IOC_CHECKPOINT`, Documentation/filesystems/ext4).
//! On XFS and older kernels, freezing the file system and thawing it at once has the same effect
//! (ioctl_fsfreeze(2), xfs_freeze(8)). A helper process thaws it if this process is killed in between.

use super::{HostError, place::Place, target::Faults};
use rustix::{
    fs,
    io::Errno,
    ioctl::{Opcode, Setter, opcode},
};
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    process::{Child, Command, Stdio},
};

/// Directories that boot loaders read.
const DIRECTORIES: [&str; 2] = ["/boot/", "/efi/"];
/// statfs(2) of ext2, ext3 and ext4, and of XFS (linux/magic.h).
const EXT4_SUPER_MAGIC: u64 = 0xef53;
const XFS_SUPER_MAGIC: u64 = 0x5846_5342;
/// `_IOW('f', 43, __u32)` of fs/ext4/ext4.h.
const EXT4_IOC_CHECKPOINT: Opcode = opcode::write::<u32>(b'f', 43);
/// `_IOWR('X', 119, int)` and `_IOWR('X', 120, int)` of linux/fs.h.
const FIFREEZE: Opcode = opcode::read_write::<i32>(b'X', 119);
const FITHAW: Opcode = opcode::read_write::<i32>(b'X', 120);
/// Waits for the end of its input, which also comes when this process ends, and then thaws.
const GUARD: &str = "read -r _; exec fsfreeze --unfreeze \"$1\"";

/// Replacement of a file that is read early, and the directory that contains it.
#[derive(Debug)]
pub(super) struct Early<'p> {
    place: &'p Place,
    dir: &'p OwnedFd,
    /// The journal is that of ext4, not of XFS.
    is_ext4: bool,
}

impl<'p> Early<'p> {
    /// `None` if a plain replacement suffices: no boot loader reads there, or the file system has no journal
    /// to wait for.
    pub(super) fn of(place: &'p Place, dir: &'p OwnedFd) -> Option<Self> {
        DIRECTORIES.iter().find(|directory| place.real.starts_with(**directory))?;
        let kind = fs::fstatfs(dir).ok().and_then(|stat| u64::try_from(stat.f_type).ok());
        let is_ext4 = match kind? {
            EXT4_SUPER_MAGIC => true,
            XFS_SUPER_MAGIC => false,
            _ => return None,
        };
        Some(Self { place, dir, is_ext4 })
    }

    /// Writes all changes so far to their final place.
    pub(super) fn settle(&self, faults: &Faults) -> Result<(), HostError> {
        let (doing, path) = ("empty the journal below", &self.place.real);
        let io = |error: io::Error| HostError::io(doing, path, error);
        faults.run(doing, path, || fs::syncfs(self.dir))?;
        let emptied = if self.is_ext4 { checkpoint(self.dir) } else { Err(Errno::NOTTY) };
        match emptied {
            Err(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL) => freeze_and_thaw(self.dir).map_err(io),
            Err(errno) if says_nothing_to_do(errno) => Ok(()),
            other => other.map_err(|errno| io(errno.into())),
        }
    }
}

/// True if there is no journal, or this process lacks permission (a container, a test). fsync must then suffice.
fn says_nothing_to_do(errno: Errno) -> bool {
    matches!(errno, Errno::NODEV | Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP)
}

fn checkpoint(dir: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: the kernel reads a `u32` through the pointer that `Setter` passes, which is the 0 given here
    // (no flags), and writes nothing back; the opcode names that size.
    unsafe { rustix::ioctl::ioctl(dir, Setter::<EXT4_IOC_CHECKPOINT, u32>::new(0)) }
}

fn freeze_and_thaw(dir: &OwnedFd) -> io::Result<()> {
    let mut guard = Guard::new(dir)?;
    // SAFETY: FIFREEZE takes no argument; the pointer passed along refers to an `i32` that lives as long as
    // the call.
    let frozen = unsafe { rustix::ioctl::ioctl(dir, Setter::<FIFREEZE, i32>::new(0)) };
    match frozen {
        Ok(()) => {
            // SAFETY: as FIFREEZE above.
            let thawed = unsafe { rustix::ioctl::ioctl(dir, Setter::<FITHAW, i32>::new(0)) };
            // If another process thawed it in between, the effect is the same.
            if thawed == Err(Errno::INVAL) { Ok(()) } else { thawed.map_err(io::Error::from) }
        }
        Err(errno) => {
            // The guard must not thaw what another process froze.
            guard.dismiss();
            if says_nothing_to_do(errno) { Ok(()) } else { Err(errno.into()) }
        }
    }
}

/// A process that thaws the file system when this one ends for any reason.
#[derive(Debug)]
struct Guard(Child);

impl Guard {
    fn new(dir: &OwnedFd) -> io::Result<Self> {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", dir.as_raw_fd()))?;
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "sh"])
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self(guard))
    }

    fn dismiss(&mut self) {
        // It has ended on its own, or ends now.
        self.0.kill().ok();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Its input ends; its attempt to thaw a thawed file system fails, which does no harm.
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}
