//! The catalogue: every setting lowlat knows, and how each is judged.
//!
//! A family of settings is one file with a const `SETTINGS` slice, and one line in [`FAMILIES`].

mod boot;
mod compare;
mod debugfs;
mod finding;
mod firmware;
mod irq;
mod judge;
mod kthread;
mod memory;
mod nic;
mod readiness;
mod service;
mod setting;
mod sysctl;
mod sysfs;
mod tuned;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use compare::same_meaning;
pub(crate) use compare::size_bytes;
pub(crate) use judge::{boot_key, chosen_word, satisfies};
pub(crate) use readiness::LOAD_READY_MAX;
pub(crate) use tuned::BOOTCMDLINE as TUNED_BOOTCMDLINE;

pub use finding::{Finding, Judgement, Verdict};
pub use setting::{Impact, Layer, Needs, Profile, Risk, Setting, Want};

use crate::{Allocation, HostSnapshot, Role};

/// Everything a judge may look at.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The facts.
    pub host: &'a HostSnapshot,
    /// What the user wants of the host.
    pub role: &'a Role,
    /// The CPUs chosen for housekeeping and isolation.
    pub allocation: &'a Allocation,
    /// The profile that is judged.
    pub profile: Profile,
}

/// The families of settings.
const FAMILIES: &[&[Setting]] = &[
    boot::clock::SETTINGS,
    boot::idle::SETTINGS,
    boot::isolation::SETTINGS,
    boot::line::SETTINGS,
    boot::memory::SETTINGS,
    boot::protection::SETTINGS,
    boot::ticks::SETTINGS,
    debugfs::SETTINGS,
    firmware::PLATFORM,
    firmware::PROCESSOR,
    firmware::MEMORY,
    firmware::POWER,
    sysfs::power::SETTINGS,
    sysfs::topology::SETTINGS,
    sysfs::platform::SETTINGS,
    memory::pages::SETTINGS,
    memory::modules::SETTINGS,
    irq::placement::SETTINGS,
    nic::hardware::SETTINGS,
    nic::queues::SETTINGS,
    irq::affinity::SETTINGS,
    kthread::SETTINGS,
    readiness::SETTINGS,
    service::SETTINGS,
    sysctl::file::SETTINGS,
    sysctl::net::SETTINGS,
    sysctl::numa::SETTINGS,
    sysctl::sched::SETTINGS,
    sysctl::vm::SETTINGS,
    sysctl::watchdog::SETTINGS,
    sysfs::guide::SETTINGS,
    tuned::SETTINGS,
];

/// Every setting of the catalogue.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    FAMILIES.iter().copied().flatten()
}

/// The setting with this id.
pub fn find(id: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.id == id)
}

/// The id that is spelled most like `id`, when one is near. An id without its layer is as near as a whole one:
/// "nohz_full" is "boot.nohz_full".
pub fn nearest(id: &str) -> Option<&'static str> {
    let distance = |setting: &&Setting| {
        let without_layer = setting.id.split_once('.').map_or(setting.id, |(_, rest)| rest);
        let names = [setting.id, without_layer, setting.id.rsplit('.').next().unwrap_or_default()];
        names.into_iter().map(|name| edit_distance(id, name)).min().unwrap_or(usize::MAX)
    };
    let near = settings().min_by_key(distance)?;
    (distance(&near) <= id.len() / 3).then_some(near.id)
}

/// Insertions, deletions and replacements that turn one text into the other (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// Every file (glob) that a setting reads: what a snapshot must hold among its knobs.
pub fn knob_globs() -> Vec<&'static str> {
    let mut globs: Vec<&str> = settings().flat_map(|setting| setting.reads.iter().copied()).collect();
    globs.sort_unstable();
    globs.dedup();
    globs
}

/// Every kernel configuration option that a setting needs, without `CONFIG_`.
pub fn config_options() -> Vec<&'static str> {
    let mut options: Vec<&str> =
        settings().flat_map(|setting| setting.needs.config.iter().copied()).collect();
    options.extend(judge::CONFIG_OPTIONS);
    options.sort_unstable();
    options.dedup();
    options
}

/// Judges one setting: first whether it applies to the profile and the kernel, then by its own judge.
pub fn judge_one(context: &Context<'_>, setting: &Setting) -> Finding {
    let want = setting.want(context.profile);
    let wanted = want.text(context);
    let judgement = judge::inapplicable(context, setting, &want, wanted.as_deref())
        .unwrap_or_else(|| (setting.judge)(context, setting));
    let is_guide = context.profile == Profile::Guide57037;
    let is_risk_accepted = context.role.accepts(setting.id);
    Finding::of(setting, judgement, wanted.unwrap_or_default(), is_guide, is_risk_accepted)
}
