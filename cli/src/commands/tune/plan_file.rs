//! Reading of saved plans.

use crate::documents::Kind;
use anyhow::{Context, bail};
use lowlat_plan::Plan;
use rustix::fs::{FileType, OFlags, fstat, stat};
use std::{fs::File, io::Read, os::fd::AsRawFd, os::unix::fs::OpenOptionsExt, path::Path};

/// Size limit of a plan file. A plan for a thousand CPUs takes a few megabytes.
const PLAN_BYTES_MAX: u64 = 256 << 20;
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Reads a plan for inspection.
pub fn read(path: &Path) -> anyhow::Result<Plan> {
    parse(path, open(path)?)
}

/// Reads a plan for an apply. Only its owner may be able to write to it, and the owner must be root, the caller or, under
/// sudo, the user who ran sudo.
pub fn read_trusted(path: &Path) -> anyhow::Result<Plan> {
    let file = open(path)?;
    check_owners(path, &file)?;
    parse(path, file)
}

fn open(path: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot read the plan {}", path.display());
    // A pipe in its place must not block the open.
    let nonblock = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(nonblock).open(path).with_context(cannot)?;
    if !file.metadata().with_context(cannot)?.is_file() {
        bail!("{}: not a regular file\nhint: save the plan with `lowlat tune plan --out FILE`", cannot());
    }
    Ok(file)
}

fn check_owners(path: &Path, file: &File) -> anyhow::Result<()> {
    let cannot = || format!("cannot trust the plan {}", path.display());
    let own = rustix::process::geteuid().as_raw();
    let caller = std::env::var("SUDO_UID").ok().and_then(|uid| uid.parse().ok()).filter(|_| own == 0);
    let is_own = |uid: u32| uid == 0 || uid == own || Some(uid) == caller;
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
        let is_sticky = mode & STICKY != 0 && FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if mode & OTHERS_WRITE != 0 && !is_sticky {
            bail!(
                "{}: other users may write to {shown} (mode {mode:04o})\nhint: review it, then run chmod go-w '{shown}'",
                cannot()
            );
        }
    }
    Ok(())
}

fn parse(path: &Path, file: File) -> anyhow::Result<Plan> {
    let shown = path.display();
    let mut bytes = Vec::new();
    file.take(PLAN_BYTES_MAX)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read the plan {shown}"))?;
    let kind = Kind {
        document: Plan::DOCUMENT,
        version: Plan::SCHEMA_VERSION,
        is: "a plan of lowlat",
        hint: "save one with `lowlat tune plan --out FILE`",
    };
    kind.parse(path, &bytes)
}
