//! Limits of a capture. They are those of Linux and of the largest hosts, so that no real host reaches one.

use super::ArchiveError;

/// Longest path or link target, in bytes (PATH_MAX).
pub(super) const PATH_BYTES_MAX: usize = 4_096;
/// Most components of a path or link target. The deepest paths below /sys have about 30.
pub(super) const LEVELS_MAX: usize = 256;
/// Maximum unpacked size of a capture in bytes, including headers.
pub(super) const STREAM_BYTES_MAX: u64 = 1 << 30;
/// Bytes of all files. What [`super::Recording`] keeps fits.
pub(super) const CONTENT_BYTES_MAX: u64 = 256 << 20;
/// Files, links and directories, including those above a file.
pub(super) const NODES_MAX: usize = 2_000_000;
/// Bytes of all paths, including those of the directories above a file.
pub(super) const NAMES_BYTES_MAX: usize = 256 << 20;
/// Bytes of one extended header of a tar: a long name, or PAX records.
pub(super) const HEADER_BYTES_MAX: u64 = 64 << 10;
/// Bytes that may be read of a small capture in total, because links can show one large file under many
/// names.
pub(super) const CAPTURE_READ_BYTES: u64 = 256 << 20;
/// Number of times that the content of a large capture may be read.
pub(super) const CONTENT_READS_MAX: u64 = 2;
/// Bytes that may be read of a directory in total.
pub(super) const DIRECTORY_READ_BYTES: u64 = 1 << 30;
/// Components visited on one path, including those of its links.
pub(super) const WALK_MAX: u32 = 1_024;

/// Characters of a path shown in a message.
const SHOWN_CHARS: usize = 60;

/// Checks the number of files, links and directories, and the bytes of their paths.
pub(super) fn check_tree(nodes: usize, names_bytes: usize) -> Result<(), ArchiveError> {
    if nodes > NODES_MAX {
        return Err(ArchiveError::new(format!("it has more than {NODES_MAX} files and directories")));
    }
    if names_bytes > NAMES_BYTES_MAX {
        return Err(ArchiveError::new(format!("its paths take more than {NAMES_BYTES_MAX} bytes")));
    }
    Ok(())
}

/// Checks the length and depth of a path or link target.
pub(super) fn check_path(what: &str, path: &str) -> Result<(), ArchiveError> {
    let start = || -> String {
        path.chars().take(SHOWN_CHARS).map(|c| if c.is_control() { '?' } else { c }).collect()
    };
    if path.len() > PATH_BYTES_MAX {
        return Err(ArchiveError::new(format!(
            "{what} \"{}\" has {} bytes, and Linux allows {PATH_BYTES_MAX}",
            start(),
            path.len()
        )));
    }
    let levels = path.split('/').filter(|name| !name.is_empty()).count();
    if levels > LEVELS_MAX {
        return Err(ArchiveError::new(format!(
            "{what} \"{}\" has {levels} levels, at most {LEVELS_MAX} are supported",
            start()
        )));
    }
    Ok(())
}
