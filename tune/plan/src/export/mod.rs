//! A plan as files of other tools: TuneD, sysctl.d, systemd, a shell script. Nothing here writes; each format is a deterministic function from the host and its plan to texts.
//!
//! Permanent formats (sysctl, TuneD, systemd) contain every value of the profile that the host supports,
//! including those that are already correct, because nothing else may keep them. The shell script applies the plan.

mod boot_words;
mod brief;
mod grub;
mod shell;
mod steps;
mod sysctl;
mod systemd;
mod text;
mod tuned;
mod verbs;

#[cfg(test)]
mod tests;

use brief::Brief;
use lowlat_host::printable;
use lowlat_settings::Context;
use std::borrow::Cow;

/// One text to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFile {
    /// Its place below the directory of the export: "HPELowLatency/tuned.conf".
    pub path: String,
    pub is_program: bool,
    pub text: String,
}

#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Name that users type.
    pub name: &'static str,
    pub about: &'static str,
    files: fn(&Brief<'_>) -> Vec<ExportedFile>,
}

/// Every format, in the order of the help.
pub const FORMATS: &[Format] = &[tuned::FORMAT, sysctl::FORMAT, systemd::FORMAT, shell::FORMAT];

impl Format {
    /// The format of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// The files of the plan that [`super::Plan::of`] makes from the same context. The first one is the main one.
    pub fn files(&self, context: &Context<'_>, lowlat_version: &str) -> Vec<ExportedFile> {
        let mut files = (self.files)(&Brief::of(context, lowlat_version));
        // A last filter for all formats: people review these files, so they contain no control characters or direction
        // marks.
        for file in &mut files {
            if let Cow::Owned(text) = printable::lines(&file.text) {
                file.text = text;
            }
        }
        files
    }
}
