//! Captures: a host's tree in one file, which [`Root::open`] reads back with the same results.
//!
//! A capture is a gzip-compressed tar. It contains what the readers of this version read, and some of what
//! later ones may need. `/.lowlat/manifest.json` describes how it was made, and the lists beside it name what
//! could not be read.

mod assemble;
mod extra;
mod redact;
#[cfg(test)]
mod tests;
mod write;

use crate::{
    Root,
    output::OutputError,
    root::INTERFACES,
    root::manifest::{self, Manifest},
    snapshot,
};
use lowlat_settings::Catalogue;
use redact::Redactor;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureOptions {
    /// True if hostnames, hardware addresses, serial numbers, UUIDs and similar data are overwritten. On by default.
    pub is_redacted: bool,
    /// The role that the host is judged by, kept as [`ROLE`]; `None` if no role is named.
    pub role: Option<Vec<u8>>,
}

/// Name of the interface ([`Root::interface`]) with the host's role, whose sources would not survive the redaction.
pub const ROLE: &str = "role.json";

impl Default for CaptureOptions {
    fn default() -> Self {
        Self { is_redacted: true, role: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CaptureSummary {
    pub path: PathBuf,
    /// Number of files with content.
    pub files: usize,
    /// Size of these files in bytes.
    pub content_bytes: u64,
    /// Paths that this user may not read. For root these are the few write-only ones.
    pub denied: usize,
    /// Files in which something was overwritten.
    pub redacted_files: usize,
    /// Warnings to read before sharing the file.
    pub warnings: Vec<String>,
}

/// Reads the host as a snapshot does, and writes what was read to `out`, which is replaced atomically when
/// complete. No data of user processes is kept. Only the owner may read the file.
///
/// # Errors
/// [`OutputError`] if the file cannot be written. No file is left behind then.
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
    if let Some(role) = &options.role {
        tree.insert_file(&format!("{INTERFACES}/{ROLE}"), role.clone());
    }
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
        files: tree.files.len(),
        content_bytes: tree.content_bytes(),
        denied,
        redacted_files,
        warnings,
    })
}
