//! Captures: a host's tree in one file, which [`Root::open`] reads back with the same answers.
//!
//! A capture is a gzip-compressed tar. It holds what the readers of this version read, and some of what later ones
//! may want; `/.lowlat/manifest.json` says what made it, and the lists beside it name what could not be read.

mod assemble;
mod extra;
mod redact;
#[cfg(test)]
mod tests;
mod write;

use crate::{
    Root,
    output::OutputError,
    root::manifest::{self, Manifest},
    snapshot,
};
use lowlat_settings::Catalogue;
use redact::Redactor;
use std::path::{Path, PathBuf};

/// What is captured, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Whether hostnames, hardware addresses, serial numbers, UUIDs and the like are overwritten. On unless the user
    /// asks otherwise.
    pub is_redacted: bool,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self { is_redacted: true }
    }
}

/// What a capture holds.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CaptureSummary {
    /// Where it was written.
    pub path: PathBuf,
    /// Files with their content.
    pub files: usize,
    /// Bytes of these files.
    pub content_bytes: u64,
    /// Paths that this user may not read. For root these are the few that can only be written.
    pub denied: usize,
    /// Files in which something was overwritten.
    pub redacted_files: usize,
    /// What the user should know before passing the file on.
    pub warnings: Vec<String>,
}

/// Reads the host as a snapshot does, and writes what was seen to `out`, replacing it in one step when all is
/// written. Of user processes nothing is kept. The file may be read by its owner only.
///
/// # Errors
/// [`OutputError`] when the file cannot be written; then nothing is left behind.
pub fn capture(
    root: &Root,
    catalogue: Catalogue,
    out: &Path,
    options: &CaptureOptions,
) -> Result<CaptureSummary, OutputError> {
    root.start_recording();
    let host = snapshot::read(root, catalogue);
    extra::read(root);
    let mut tree = assemble::assemble(root.take_recording());
    let mut warnings = Vec::new();
    let mut redacted_files = 0;
    if options.is_redacted {
        let redactor = Redactor::new(&tree, catalogue, &mut warnings);
        redacted_files = redactor.redact(&mut tree);
    }
    let manifest = Manifest::new(&host.origin, options.is_redacted);
    tree.insert_file(manifest::PATH, manifest.to_json().into_bytes());
    let denied = tree.notes.get(crate::root::DENIED_LIST).map_or(0, std::collections::BTreeSet::len);
    write::write(&tree, out)?;
    Ok(CaptureSummary {
        path: out.to_owned(),
        files: tree.file_count(),
        content_bytes: tree.content_bytes(),
        denied,
        redacted_files,
        warnings,
    })
}
