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
        "no boot loader that lowlat knows was found (looked at: {looked_at}); set the command line by hand: {line}"
    )]
    Unknown {
        /// Where was looked.
        looked_at: String,
        /// The parameters to add.
        line: String,
    },
    /// A boot loader that lowlat knows, and whose files it does not write.
    #[error("this host starts with {name}, whose {file} lowlat does not write; set there by hand: {line}")]
    NotWritten {
        /// The boot loader.
        name: &'static str,
        /// The file that holds the line.
        file: String,
        /// The parameters to add.
        line: String,
    },
    /// The line is inside a signed or measured image.
    #[error(
        "this host starts with the unified kernel image {image}, which holds the command line: set it by hand in \
         /etc/kernel/cmdline ({line}), build the image again with the tool that built it (mkinitcpio -P, dracut \
         --regenerate-all, or kernel-install add), restart, and run `lowlat tune verify`"
    )]
    Image {
        /// The image.
        image: String,
        /// The parameters to add.
        line: String,
    },
    /// Deployments of ostree have their own way to change the line, with a way back of their own.
    #[error(
        "this host is deployed by ostree, which keeps the command line itself: run `{command}`, then restart"
    )]
    Ostree {
        /// What to run, whole.
        command: String,
    },
    /// Hosts that are images: the line is a part of the image.
    #[error(
        "this host is deployed by bootc, and the command line is a part of its image: put `{setting}` into \
         /usr/lib/bootc/kargs.d/99-lowlat.toml of the image{taken_off}, build it, run `bootc upgrade`, then restart"
    )]
    Bootc {
        /// The line of the file.
        setting: String,
        /// What is to be taken off, as a part of the sentence.
        taken_off: String,
    },
    /// A container has no kernel of its own.
    #[error("this is a container ({found}): its kernel's command line belongs to the host; run lowlat there")]
    Container {
        /// What tells so.
        found: String,
    },
    /// What is to be read may not be.
    #[error("{path}: denied; run as root")]
    Denied {
        /// The path.
        path: String,
    },
    /// A file is not what it should be.
    #[error("{path}: {fault}; {advice}")]
    File {
        /// The file.
        path: String,
        /// What was found and expected.
        fault: String,
        /// The next step.
        advice: String,
    },
    /// A parameter that boot loaders' files cannot hold.
    #[error("{0}; leave its setting out of the plan")]
    Token(TokenFault),
    /// The whole line is longer than the kernel takes.
    #[error(
        "{place}: the command line would have {bytes} bytes, and the kernel cuts it off behind {LINE_BYTES_MAX}; take \
         parameters off that nobody needs, and plan again"
    )]
    TooLong {
        /// The entry or file.
        place: String,
        /// What it would come to.
        bytes: usize,
    },
    /// The generator of the menu failed.
    #[error(
        "`{program}` failed: {said}; correct what it complains of, or take the change back with `lowlat tune rollback`"
    )]
    Generator {
        /// The program.
        program: String,
        /// What it said.
        said: String,
    },
    /// What the generator wrote is not what was asked for. It was not put in place.
    #[error(
        "the menu that `{program}` wrote is not used: {faults}; look at what else sets GRUB_CMDLINE_LINUX in \
         /etc/default/grub, /etc/default/grub.d and /etc/grub.d, or take the change back with `lowlat tune rollback`"
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
            advice: format!("write the assignment so, or set it by hand: {}", by_hand(tokens)),
        }
    }

    pub(super) fn grubenv(path: &str, fault: &GrubEnvFault) -> Self {
        let advice = match fault {
            GrubEnvFault::TooLarge(_) => {
                "the line of these entries is the variable kernelopts: take variables out of the block that nobody \
                 needs (`grub2-editenv - list`), or write the line itself into the entries of /boot/loader/entries in \
                 the place of $kernelopts, where it has room, and plan again"
            }
            _ => "restore the block with `grub2-editenv create` and set its variables again",
        };
        Self::File { path: path.to_owned(), fault: fault.to_string(), advice: advice.to_owned() }
    }

    pub(super) fn generator(program: &str, error: &io::Error) -> Self {
        Self::Generator { program: program.to_owned(), said: error.to_string() }
    }
}

/// Parameters as a person is told to set them.
pub(super) fn by_hand(tokens: &[BootToken]) -> String {
    let set: Vec<String> = tokens.iter().filter_map(spell).collect();
    let off: Vec<&str> = tokens.iter().filter(|t| t.value.is_none()).map(|t| t.name.as_str()).collect();
    let again = tokens.iter().any(|t| t.value.is_some() && t.before.is_some());
    let mut text = set.join(" ");
    if again {
        text += " (in the place of what stands there of the same names)";
    }
    if !off.is_empty() {
        let and = if text.is_empty() { "" } else { ", and " };
        text += &[and, "take off ", &off.join(" ")].concat();
    }
    text
}
