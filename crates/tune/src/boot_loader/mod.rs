//! Where the kernel's command line is configured, and how it is changed. One file per boot loader.
//!
//! A change goes in two halves: the *sources* that an administrator edits (or drop-ins beside them), then what the
//! boot loader's own program *generates* out of them. Both are files, and both go through the undo log, so that the
//! rollback restores the boot menu byte for byte without calling anybody's program.

use crate::Programs;
use lowlat_model::tune::BootToken;
use lowlat_sys::{Root, undo::State};
use thiserror::Error;

/// A file that a boot loader needs changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path.
    pub path: String,
    /// What it shall be.
    pub new: State,
}

/// Why the command line cannot be set.
#[derive(Debug, Error)]
pub enum BootLoaderError {
    /// No boot loader that lowlat knows.
    #[error(
        "no boot loader that lowlat knows was found (looked at: {looked_at}); set the command line by hand: {line}"
    )]
    Unknown {
        /// Where was looked.
        looked_at: String,
        /// The parameters to add.
        line: String,
    },
}

/// A boot loader, found on a host.
pub trait BootLoader: std::fmt::Debug {
    /// Its name for people: "GRUB (Debian)".
    fn name(&self) -> &'static str;

    /// The files whose change puts `tokens` on the command line: first half.
    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError>;

    /// The files that are generated from the sources as they are now: second half, after the first one is applied.
    fn generated(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError>;
}

/// Finds the host's boot loader.
pub fn detect(_root: &Root) -> Result<Box<dyn BootLoader>, BootLoaderError> {
    Err(BootLoaderError::Unknown { looked_at: String::new(), line: String::new() })
}
