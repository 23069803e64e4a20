//! The drop-in for GRUB's configuration, and the words for grubby.

use super::brief::Brief;
use super::text::{note, shell_pattern, shell_word};
use crate::boot_line;
use lowlat_settings::change::grammar;

/// The parameters that a plan changes on the command line.
#[derive(Debug, Default)]
pub(super) struct BootChange {
    /// New words, such as "nohz_full=1-7".
    pub(super) words: Vec<String>,
    /// Names of parameters whose other occurrences on the line are dropped.
    pub(super) replaced: Vec<String>,
    /// Their occurrences on the present line.
    pub(super) old_words: Vec<String>,
}

impl BootChange {
    pub(super) fn of(brief: &Brief<'_>) -> Self {
        let mut change = Self::default();
        for token in brief.plan.changes.iter().flat_map(|change| change.target.boot_tokens()) {
            change.words.extend(boot_line::spell(token));
            if let Some(before) = &token.before {
                change.replaced.push(token.name.clone());
                // A word that does not fit is removed and not restored, because an undo on another host
                // would run it.
                change.old_words.extend(grammar::is_boot_word(before).then(|| before.clone()));
            }
        }
        change
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.replaced.is_empty()
    }

    /// The text of /etc/default/grub.d/zz-lowlat.cfg, a part of a shell script that update-grub reads.
    pub(super) fn drop_in(&self, brief: &Brief<'_>) -> String {
        let mut text = brief.header("Boot parameters; read by update-grub after /etc/default/grub.");
        text += &note("They apply to normal boot entries only; recovery entries are unchanged.");
        if !self.replaced.is_empty() {
            let patterns: Vec<String> = self
                .replaced
                .iter()
                .flat_map(|name| spellings(name))
                .map(|name| shell_pattern(&name))
                .collect();
            text += &REPLACE.replace("PATTERNS", &patterns.join(" | "));
        }
        if !self.words.is_empty() {
            text += &format!(
                "GRUB_CMDLINE_LINUX_DEFAULT=\"${{GRUB_CMDLINE_LINUX_DEFAULT:+$GRUB_CMDLINE_LINUX_DEFAULT }}\"{}\n",
                shell_word(&self.words.join(" "))
            );
        }
        text
    }
}

/// The kernel treats dashes and underscores in names as equal.
fn spellings(name: &str) -> Vec<String> {
    let mut spellings = vec![name.to_owned(), name.replace('_', "-"), name.replace('-', "_")];
    spellings.sort_unstable();
    spellings.dedup();
    spellings
}

/// Removes old words of changed parameters from the lines of /etc/default/grub.
const REPLACE: &str = include_str!("sh/grub.sh");
