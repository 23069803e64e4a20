//! Files that only trusted users can have written.

use anyhow::{Context, bail};
use rustix::fs::{FileType, OFlags, fstat, stat};
use std::{fs::File, os::fd::AsRawFd, os::unix::fs::OpenOptionsExt, path::Path};

const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// A kind of file, for errors.
pub struct TrustedKind {
    /// "the plan".
    pub what: &'static str,
    /// What to do if it is no file.
    pub hint: &'static str,
}

impl TrustedKind {
    /// Opens the file, which must be a regular one.
    pub fn open(&self, path: &Path) -> anyhow::Result<File> {
        let cannot = || format!("cannot read {} {}", self.what, path.display());
        // A pipe in its place must not block the open.
        let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
        let file = File::options().read(true).custom_flags(nonblock).open(path).with_context(cannot)?;
        if !file.metadata().with_context(cannot)?.is_file() {
            bail!("{}: not a regular file\nhint: {}", cannot(), self.hint);
        }
        Ok(file)
    }

    /// Checks that no user but those of `is_own` can write the file or replace it.
    pub fn check_owners(&self, path: &Path, file: &File, is_own: impl Fn(u32) -> bool) -> anyhow::Result<()> {
        let cannot = || format!("cannot trust {} {}", self.what, path.display());
        // The real path of the opened file, after links.
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).with_context(cannot)?;
        let found = fstat(file).with_context(cannot)?;
        for at in real.ancestors() {
            let found = if at == real { found } else { stat(at).with_context(cannot)? };
            let (mode, shown) = (found.st_mode & 0o7777, at.display());
            if !is_own(found.st_uid) {
                bail!(
                    "{}: {shown} belongs to user {}\nhint: review it, then copy it to your own directory",
                    cannot(),
                    found.st_uid
                );
            }
            // In a directory like /tmp, other users can add files but not replace this one.
            let is_sticky =
                mode & STICKY != 0 && FileType::from_raw_mode(found.st_mode) == FileType::Directory;
            if mode & OTHERS_WRITE != 0 && !is_sticky {
                bail!(
                    "{}: other users may write to {shown} (mode {mode:04o})\nhint: review it, then run chmod go-w '{shown}'",
                    cannot()
                );
            }
        }
        Ok(())
    }
}
