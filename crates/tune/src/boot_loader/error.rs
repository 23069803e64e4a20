//! Why the command line cannot be set.

use lowlat_host::cmdline::LINE_BYTES_MAX;
use lowlat_plan::{
    boot_files::{DefaultsFault, GrubEnvFault, TokenFault},
    spell,
};
use lowlat_settings::change::BootToken;
use std::io;
use thiserror::Error;

/// Why the command line cannot be set.
#[derive(Debug, Error)]
pub enum BootLoaderError {
    /// No boot loader that lowlat knows.
    #[error(
        "no known boot loader found (searched: {looked_at}); set the kernel parameters manually: {line}; then \
             reboot"
    )]
    Unknown {
        /// The places searched.
        looked_at: String,
        /// The parameters to add.
        line: String,
    },
    /// A known boot loader that lowlat does not configure.
    #[error(
        "this host boots with {name}, which lowlat does not configure; set the kernel parameters manually in \
         {place}: {line}; then {then}reboot"
    )]
    NotWritten {
        /// The boot loader.
        name: &'static str,
        /// The file that contains the command line.
        place: String,
        /// The parameters to add.
        line: String,
        /// What must run before the reboot, as the start of a clause; empty if nothing.
        then: String,
    },
    /// The command line is inside a signed or measured image.
    #[error(
        "this host boots the unified kernel image {image}, which contains the command line; set it manually in \
         /etc/kernel/cmdline ({line}), rebuild the image (mkinitcpio -P, dracut --regenerate-all, or kernel-install add), reboot, and run `lowlat tune verify`"
    )]
    Image {
        /// The image.
        image: String,
        /// The parameters to add.
        line: String,
    },
    /// ostree changes the command line of its deployments, and rolls it back, with its own tool.
    #[error("ostree manages the command line of this host; run `{command}`, then reboot")]
    Ostree {
        /// The complete command to run.
        command: String,
    },
    /// The host is an image that contains the command line.
    #[error(
        "bootc deploys this host, and the command line is part of its image; add `{setting}` to \
         /usr/lib/bootc/kargs.d/99-lowlat.toml of the image{taken_off}, build it, run `bootc upgrade`, then reboot"
    )]
    Bootc {
        /// The line of the file.
        setting: String,
        /// The parameters to remove, as a part of the sentence.
        taken_off: String,
    },
    /// A container shares its host's kernel.
    #[error(
        "this is a container ({found}), and the command line belongs to the host's kernel; run lowlat on the \
         host"
    )]
    Container {
        /// The evidence.
        found: String,
    },
    /// Permission denied.
    #[error("cannot read {path}: permission denied; run as root")]
    Denied {
        /// The path.
        path: String,
    },
    /// A file has unexpected content.
    #[error("{path}: {fault}; {advice}")]
    File {
        /// The file.
        path: String,
        /// What was found, and what was expected.
        fault: String,
        /// The next step.
        advice: String,
    },
    /// A parameter that boot loaders' files cannot contain.
    #[error("{0}; leave its setting out of the plan")]
    Token(TokenFault),
    /// The whole command line exceeds the kernel's limit.
    #[error(
        "{place}: the command line would have {bytes} bytes, and the kernel truncates it after {LINE_BYTES_MAX}; \
         remove unneeded parameters, and plan again"
    )]
    TooLong {
        /// The entry or file.
        place: String,
        /// Its length.
        bytes: usize,
    },
    /// The program that generates the menu failed.
    #[error("`{program}` failed: {said}; correct the cause, or roll back with `lowlat tune rollback`")]
    Generator {
        /// The program.
        program: String,
        /// Its error message.
        said: String,
    },
    /// The generated menu is wrong. It was not installed.
    #[error(
        "cannot use the menu that `{program}` generated: {faults}; check what else sets GRUB_CMDLINE_LINUX in \
         /etc/default/grub, /etc/default/grub.d and /etc/grub.d, or roll back with `lowlat tune rollback`"
    )]
    Generated {
        /// The program.
        program: String,
        /// What is wrong, the first few.
        faults: String,
    },
}

impl BootLoaderError {
    pub(super) fn defaults(path: &str, fault: &DefaultsFault, tokens: &[BootToken]) -> Self {
        Self::File {
            path: path.to_owned(),
            fault: fault.to_string(),
            advice: format!(
                "write the assignment in that form, or set the parameters manually: {}",
                by_hand(tokens)
            ),
        }
    }

    pub(super) fn grubenv(path: &str, fault: &GrubEnvFault) -> Self {
        let advice = match fault {
            GrubEnvFault::TooLarge(_) => {
                "these entries read their command line from the variable kernelopts; remove unneeded variables from \
                 the block (`grub2-editenv - list`), or replace $kernelopts in /boot/loader/entries by the command line itself, and plan again"
            }
            _ => "recreate the block with `grub2-editenv create`, and set its variables again",
        };
        Self::File { path: path.to_owned(), fault: fault.to_string(), advice: advice.to_owned() }
    }

    pub(super) fn generator(program: &str, error: &io::Error) -> Self {
        Self::Generator { program: program.to_owned(), said: error.to_string() }
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
