//! Errors of setting the command line.

use lowlat_plan::{
    boot_files::{DefaultsFault, GrubEnvFault, TokenFault},
    spell,
};
use lowlat_settings::change::BootToken;
use std::fmt;
use thiserror::Error;

/// Longest quote of a program's output in an error, in characters.
const SAID_MAX: usize = 400;

/// Reason why the command line cannot be set.
#[derive(Debug, Error)]
pub enum BootLoaderError {
    /// A container shares its host's kernel.
    /// - `found`: the file or fact that shows the container.
    #[error(
        "this is a container ({found}), and the command line belongs to the host's kernel; run lowlat on the \
         host"
    )]
    Container { found: String },
    #[error("cannot read {path}: permission denied; run as root")]
    Denied { path: String },
    /// A file has unexpected content.
    /// - `fault`: the content found, and the one expected.
    #[error("{path}: {fault}; {advice}")]
    File { path: String, fault: String, advice: String },
    /// The command line is set elsewhere, or a change of it would not work.
    #[error("{0}")]
    Refused(String),
}

impl From<TokenFault> for BootLoaderError {
    fn from(fault: TokenFault) -> Self {
        Self::Refused(format!("{fault}; leave its setting out of the plan"))
    }
}

impl BootLoaderError {
    pub(super) fn file(path: &str, fault: impl fmt::Display, advice: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), fault: fault.to_string(), advice: advice.into() }
    }

    pub(super) fn defaults(path: &str, fault: &DefaultsFault, tokens: &[BootToken]) -> Self {
        let advice =
            format!("write the assignment in that form, or set the parameters manually: {}", by_hand(tokens));
        Self::file(path, fault, advice)
    }

    pub(super) fn grubenv(path: &str, fault: &GrubEnvFault) -> Self {
        let advice = match fault {
            GrubEnvFault::TooLarge(_) => {
                "these entries read their command line from the variable kernelopts; remove unneeded variables from \
                 the block (`grub2-editenv - list`), or replace $kernelopts in /boot/loader/entries by the command line itself, and plan again"
            }
            _ => "recreate the block with `grub2-editenv create`, and set its variables again",
        };
        Self::file(path, fault, advice)
    }

    /// No boot loader that lowlat knows.
    pub(super) fn unknown(looked_at: &str, tokens: &[BootToken]) -> Self {
        Self::Refused(format!(
            "no known boot loader found (searched: {looked_at}); set the kernel parameters manually: {}; then reboot",
            by_hand(tokens)
        ))
    }

    /// The command line is inside an image that lowlat does not build again.
    pub(super) fn image(image: &str, why: &str, tokens: &[BootToken]) -> Self {
        Self::Refused(format!(
            "this host boots the unified kernel image {image}, which contains the command line, and {why}; set it \
             manually in /etc/kernel/cmdline ({}), rebuild the image (mkinitcpio -P, dracut --regenerate-all, or \
             kernel-install add), reboot, and run `lowlat tune verify`",
            by_hand(tokens)
        ))
    }

    /// The program that generates the menu failed.
    pub(super) fn generator(program: &str, said: impl fmt::Display) -> Self {
        Self::Refused(format!(
            "`{program}` failed: {said}; correct the cause, or roll back with `lowlat tune rollback`"
        ))
    }
}

/// The parameters as text, for a person who sets them manually.
pub(super) fn by_hand(tokens: &[BootToken]) -> String {
    let set: Vec<String> = tokens.iter().filter_map(spell).collect();
    let off: Vec<&str> = tokens.iter().filter(|t| t.value.is_none()).map(|t| t.name.as_str()).collect();
    let again = tokens.iter().any(|t| t.value.is_some() && t.before.is_some());
    let mut text = set.join(" ");
    if again {
        text += " (replacing the present values)";
    }
    if !off.is_empty() {
        let and = if text.is_empty() { "" } else { ", and " };
        text += &[and, "remove ", &off.join(" ")].concat();
    }
    text
}

/// The end of a program's output.
pub(super) fn end_of(said: &str) -> String {
    let said = said.trim();
    let skip = said.chars().count().saturating_sub(SAID_MAX);
    let end: String = said.chars().skip(skip).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if end.is_empty() { "no reason given".to_owned() } else { end }
}
