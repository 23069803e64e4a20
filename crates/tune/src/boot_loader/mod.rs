//! Where the kernel's command line is configured, and how it is changed. One file per boot loader.
//!
//! A change goes in two halves: the *sources* that an administrator edits (or drop-ins beside them), then what the
//! boot loader's own program *generates* out of them. Both are files, and both go through the undo log, so that the
//! rollback restores the boot menu byte for byte without calling anybody's program. Of GRUB's block of variables, which
//! others write to as well, one variable is changed and restored.
//!
//! Entries for rescue, recovery and fallback stay as the distribution has them wherever they have a line of their own:
//! they are the way in on the day when a parameter keeps a host from starting.

mod bls;
mod by_hand;
mod detect;
mod efi;
mod error;
mod files;
mod grub_defaults;
mod grub_drop_in;
mod grub_menu_file;
mod grub_variable;
mod ostree;
mod systemd_boot;
#[cfg(test)]
mod tests;

use crate::Programs;
use lowlat_host::Reading;
use lowlat_settings::change::BootToken;
use lowlat_sys::{
    Root,
    undo::{State, TargetSpec},
};

pub(crate) use detect::container;
pub use detect::detect;
pub use error::BootLoaderError;
pub(crate) use grub_variable::GrubVariable;

/// A file that a boot loader needs changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path.
    pub path: String,
    /// The one variable of it that changes, where it is GRUB's block of variables; none for a whole file.
    pub variable: Option<&'static str>,
    /// What it shall be.
    pub new: State,
}

impl FileChange {
    /// What changes, for the undo log.
    pub(crate) fn target(&self) -> TargetSpec {
        match self.variable {
            Some(variable) => GrubVariable::spec(&self.path, variable),
            None => TargetSpec::file(self.path.clone()),
        }
    }
}

/// The line of one entry of a boot menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryLine {
    /// The entry's file.
    pub path: String,
    /// Its parameters of the kernel, variables as they stand.
    pub options: String,
}

/// A boot loader, found on a host.
pub trait BootLoader: std::fmt::Debug {
    /// Its name for people: "GRUB (Debian)".
    fn name(&self) -> &'static str;

    /// The files whose change puts `tokens` on the command line: first half. A file that needs no change can be among
    /// them, as it is.
    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError>;

    /// The files that are generated from the sources as they are now: second half, after the first one is applied.
    fn generated(&self, root: &Root, programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError>;

    /// The command line of the entry that the next boot takes by default, as the files say now: what /proc/cmdline will
    /// show, but for what a boot loader adds by itself. Absent where no entry was found.
    fn next_boot_line(&self, _root: &Root) -> Reading<String> {
        Reading::Absent
    }

    /// The lines that entries have in files of their own, as far as they can be read; none where a program generates
    /// one menu of all.
    fn entry_lines(&self, _root: &Root) -> Vec<EntryLine> {
        Vec::new()
    }

    /// What the user should know of the change, one sentence each: entries that are left alone, a name chosen,
    /// parameters of others that win.
    fn notes(&self, _root: &Root, _tokens: &[BootToken]) -> Vec<String> {
        Vec::new()
    }
}
