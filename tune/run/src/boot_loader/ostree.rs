//! Hosts deployed by ostree (Silverblue, CoreOS, `bootc` images): the line belongs to the deployment. The tool that
//! changes it makes a new deployment, and can roll back to the previous one. lowlat prints the command and writes
//! nothing.

use super::{BootLoader, BootLoaderError, FileChange, files};
use lowlat_host::{Reading, shell};
use lowlat_host_run::Root;
use lowlat_plan::{
    boot_files::{entry, entry_order::of_ostree},
    spell,
};
use lowlat_settings::change::BootToken;

#[derive(Debug)]
pub(super) struct Ostree;

impl BootLoader for Ostree {
    fn name(&self) -> &'static str {
        "ostree"
    }

    fn sources(&self, root: &Root, tokens: &[BootToken]) -> Result<Vec<FileChange>, BootLoaderError> {
        let has_rpm_ostree = root.exists("/usr/bin/rpm-ostree");
        if root.exists("/usr/bin/bootc") && !has_rpm_ostree {
            return Err(bootc(tokens));
        }
        Err(BootLoaderError::Refused(format!(
            "ostree manages the command line of this host; run {}, then reboot",
            if has_rpm_ostree { command(tokens) } else { plain_command(tokens) }
        )))
    }

    fn next_boot_line(&self, root: &Root) -> Reading<String> {
        let line = files::entries(root, super::bls::ENTRIES)
            .map(|entries| of_ostree(&entries).map(|newest| entry::options(&newest.text)));
        files::as_reading(line)
    }
}

/// The command that sets the parameters. Present words are deleted one by one, because a repeated parameter
/// cannot be replaced.
fn command(tokens: &[BootToken]) -> String {
    let off = tokens.iter().flat_map(|token| {
        let before = token.before.as_deref().unwrap_or_default().split_whitespace();
        before.map(|word| format!(" --delete={}", shell::word(word)))
    });
    let set = tokens.iter().filter_map(spell).map(|word| format!(" --append={}", shell::word(&word)));
    format!("`rpm-ostree kargs{}`", off.chain(set).collect::<String>())
}

/// The same on hosts with ostree alone, whose tool replaces a parameter but removes none.
fn plain_command(tokens: &[BootToken]) -> String {
    let set = tokens.iter().filter_map(spell).map(|word| format!(" --replace={}", shell::word(&word)));
    let off: Vec<&str> = tokens
        .iter()
        .filter(|token| token.value.is_none())
        .filter_map(|token| token.before.as_deref())
        .collect();
    let and = if off.is_empty() {
        String::new()
    } else {
        format!(", then remove {} from the new entry", off.join(" "))
    };
    format!("`ostree admin instutil set-kargs --merge{}`{and}", set.collect::<String>())
}

fn bootc(tokens: &[BootToken]) -> BootLoaderError {
    let words = tokens.iter().filter_map(spell);
    let list: Vec<String> = words.map(|word| format!("\"{}\"", word.replace('"', "\\\""))).collect();
    let off: Vec<&str> = tokens.iter().filter_map(|token| token.before.as_deref()).collect();
    let taken_off =
        if off.is_empty() { String::new() } else { format!(" and remove what sets {}", off.join(" ")) };
    BootLoaderError::Refused(format!(
        "bootc deploys this host, and the command line is part of its image; add `kargs = [{}]` to \
         /usr/lib/bootc/kargs.d/99-lowlat.toml of the image{taken_off}, build it, run `bootc upgrade`, then reboot",
        list.join(", ")
    ))
}
