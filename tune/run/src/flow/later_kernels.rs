//! Boot entries of kernels that were installed while a plan was in force. They have its parameters, but no
//! record in the undo log, so they are reported and not changed.

use super::Site;
use lowlat_host::cmdline;
use lowlat_plan::{Plan, spell};
use lowlat_settings::change::BootToken;

/// Notes on the entries that a complete rollback does not change because `is_known` returns false for their
/// path.
pub(super) fn notes(site: &Site, plan: &Plan, is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let words: Vec<String> = plan.boot_tokens().unwrap_or_default().iter().filter_map(brought).collect();
    let Ok(loader) = (site.detect)(&site.root) else { return Vec::new() };
    let of_later = loader.entry_lines(&site.root).into_iter().filter(|line| !is_known(&line.path));
    of_later
        .filter_map(|line| {
            let kept: Vec<&str> =
                cmdline::split(&line.options).into_iter().filter(|word| words.iter().any(|w| w == word)).collect();
            (!kept.is_empty()).then(|| {
                format!(
                    "{} belongs to a kernel installed after the plan, and still has its parameters. Remove {} with \
                     an editor or with `grubby --update-kernel=IMAGE --remove-args=…`.",
                    line.path,
                    kept.join(" ")
                )
            })
        })
        .collect()
}

/// The word that the plan added to the line; none if it was present before, or was removed.
fn brought(token: &BootToken) -> Option<String> {
    let word = spell(token)?;
    let stood = token.before.as_deref().is_some_and(|before| cmdline::split(before).contains(&word.as_str()));
    (!stood).then_some(word)
}
