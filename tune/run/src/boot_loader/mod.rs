//! Configures the kernel's command line. One file per boot loader.
//!
//! A change has two steps: the *sources* that an administrator edits (or drop-ins next to them), then the
//! files that the boot loader's program *generates* from them. Both go through the undo log, so a rollback
//! restores the boot menu byte for byte without running that program. In GRUB's block of variables, which
//! other tools also write, a single variable is changed and restored.
//!
//! Entries for rescue, recovery and fallback stay unchanged wherever they have a separate command line: they
//! boot the host if a parameter keeps the others from starting.

mod bls;
mod by_hand;
mod detect;
mod error;
mod files;
mod grub_generated;
mod grub_menu_file;
mod grub_variable;
mod ostree;
mod pe;
mod systemd_boot;
#[cfg(test)]
mod tests;
mod unified_image;

use crate::Programs;
use lowlat_host::{
    Reading,
    cmdline::{CommandLine, Repeat},
};
use lowlat_host_run::{Root, snapshot::built_in_line};
use lowlat_settings::change::BootToken;
use lowlat_undo::{State, TargetSpec};

pub(crate) use detect::container;
pub use detect::detect;
pub use error::BootLoaderError;
pub(crate) use grub_variable::GrubVariable;

/// Maximum length of an EFI variable, in UTF-16 units.
const EFI_LETTERS_MAX: usize = 1024;

/// The default boot entry of a host: its kernel's image, then the arguments. Absent if its boot loader is unknown.
pub fn default_line(root: &Root) -> Reading<String> {
    match detect(root) {
        Ok(loader) => loader.next_boot_line(root),
        Err(BootLoaderError::Denied { .. }) => Reading::Denied,
        Err(_) => Reading::Absent,
    }
}

/// The note on parameters of the plan that the kernel was also built with, which come before the boot loader's.
pub(crate) fn built_in_note(root: &Root, tokens: &[BootToken]) -> Option<String> {
    let built_in = built_in_line(root).into_known()?;
    let line = CommandLine::parse(&built_in.parameters);
    let standing =
        tokens.iter().filter_map(|token| Some((lowlat_plan::standing(&line, &token.name)?, token)));
    let found: Vec<String> =
        standing.map(|(words, token)| format!("{words} ({})", Repeat::of(&token.name).rule())).collect();
    (!found.is_empty()).then(|| {
        format!(
            "The kernel was built with a command line (CONFIG_CMDLINE, {}:{}), which comes before the boot loader's and \
             stays: {}.",
            built_in.path,
            built_in.line,
            found.join(", ")
        )
    })
}

/// A change of a boot loader's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// The variable that changes, in GRUB's block of variables; none for a whole file.
    pub variable: Option<&'static str>,
    pub new: State,
}

impl FileChange {
    /// The target in the undo log.
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
    pub path: String,
    /// Its kernel parameters, with variables unexpanded.
    pub options: String,
}

/// The boot loader of a host.
pub trait BootLoader: std::fmt::Debug {
    /// Its name for people: "GRUB (Debian)".
    fn name(&self) -> &'static str;

    /// The files whose change adds `tokens` to the command line: the first step. They can include unchanged
    /// files.
    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError>;

    /// The files generated from the present sources: the second step, after the first is applied.
    fn generated(&self, _root: &Root, _programs: &dyn Programs) -> Result<Vec<FileChange>, BootLoaderError> {
        Ok(Vec::new())
    }

    /// The command that generates the second step's files, for a person; none if there are none.
    fn generator(&self, _root: &Root) -> Option<String> {
        None
    }

    /// The command line of the default entry of the next boot: what /proc/cmdline will show, except for
    /// words that the boot loader adds. Absent if no entry was found.
    fn next_boot_line(&self, _root: &Root) -> Reading<String> {
        Reading::Absent
    }

    /// The command lines of entries with separate files, as far as they can be read; empty if a program
    /// generates one menu.
    fn entry_lines(&self, _root: &Root) -> Vec<EntryLine> {
        Vec::new()
    }

    /// Notes on the change for the user, one sentence each: unchanged entries, a chosen name, other tools'
    /// parameters that win.
    fn notes(&self, _root: &Root, _tokens: &[BootToken]) -> Vec<String> {
        Vec::new()
    }
}

/// True if the firmware is EFI.
fn is_efi(root: &Root) -> bool {
    root.exists("/sys/firmware/efi")
}

/// A text variable that a boot loader sets for the operating system (Boot Loader Interface), such as `LoaderInfo` with
/// "systemd-boot 252.30-1~deb12u2"; none if it is not set.
fn efi_variable(root: &Root, name: &str) -> Option<String> {
    let path = format!("/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f");
    let Reading::Known(bytes) = root.read_bytes(&path) else { return None };
    // Four bytes of attributes, then little-endian UTF-16 with a zero at its end.
    let units =
        bytes.get(4..)?.chunks_exact(2).filter_map(|pair| Some(u16::from_le_bytes(pair.try_into().ok()?)));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).take(EFI_LETTERS_MAX).collect();
    let text = String::from_utf16_lossy(&units);
    (!text.is_empty()).then_some(text)
}
