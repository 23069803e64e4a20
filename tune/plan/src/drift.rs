//! Checks whether a host is still in the state that a plan found.

use super::Plan;
use lowlat_host::{
    HostSnapshot, Reading,
    cmdline::{CommandLine, Repeat},
};
use lowlat_settings::{
    change::{BootToken, Target},
    same_meaning,
};

/// A change whose target has neither its old nor its planned value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The change's index in [`Plan::changes`].
    pub change: usize,
    /// Its value when the plan was made.
    pub before: String,
    pub now: String,
}

impl Plan {
    /// The changes whose targets have changed since the plan was made. Interrupts and threads that no longer
    /// exist are excluded, as are values that a snapshot lacks.
    pub fn drift(&self, host: &HostSnapshot) -> Vec<Drift> {
        let mut drift = Vec::new();
        for (at, change) in self.changes.iter().enumerate() {
            if let Target::CommandLine { tokens } = &change.target {
                drift.extend(of_tokens(at, tokens, &host.kernel.tokens()));
                continue;
            }
            let Reading::Known(now) = change.target.kind().present(host) else { continue };
            let is_known = [change.before.text(), &change.after].iter().any(|text| same_meaning(text, &now));
            if change.before.is_known() && !is_known {
                drift.push(Drift { change: at, before: change.before.text().to_owned(), now });
            }
        }
        drift
    }
}

/// True if the command line has the parameter as wanted: the occurrence that the kernel uses with its value, or none if it is
/// removed.
pub(super) fn stands(line: &CommandLine, token: &BootToken) -> bool {
    let Some(value) = &token.value else { return !line.has(&token.name) };
    let is_wanted = |found: &str| same_meaning(found, value);
    match Repeat::of(&token.name) {
        Repeat::First | Repeat::Last => line.in_force(&token.name).is_some_and(is_wanted),
        Repeat::Each => {
            let mut all = line.all(&token.name).map(Option::unwrap_or_default);
            line.has(&token.name) && all.all(is_wanted)
        }
    }
}

fn of_tokens(at: usize, tokens: &[BootToken], line: &CommandLine) -> Vec<Drift> {
    let mut drift = Vec::new();
    for token in tokens {
        let now = super::boot_line::standing(line, &token.name);
        if now != token.before && !stands(line, token) {
            let or_none = |text: &Option<String>| {
                text.clone().unwrap_or_else(|| format!("no {} on the command line", token.name))
            };
            drift.push(Drift { change: at, before: or_none(&token.before), now: or_none(&now) });
        }
    }
    drift
}
