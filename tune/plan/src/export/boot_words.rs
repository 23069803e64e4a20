//! The parameters that a TuneD profile adds to the command line.
//!
//! For profile `guide-57037` they are the guide's words in the guide's order (section 4.3.2.1.1, followed by
//! those that cpu-partitioning of TuneD 2.12 added), so /proc/cmdline matches the guide (section 4.4.1).

use super::brief::Brief;
use super::text::one_line;
use lowlat_host::cmdline::{CommandLine, Repeat, same_name, split};
use lowlat_settings::{
    Layer,
    change::{BootToken, grammar::boot_line},
    same_meaning,
};

/// One word of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BootWord {
    Set(String),
    /// The profile has it, but it is left out, with the reason.
    LeftOut(String, String),
}

/// The guide's words. TuneD fills in `{isolated}` and `{mask}`.
const GUIDE: &[(&str, &str)] = &[
    ("boot.quiet", "quiet"),
    ("boot.selinux", "selinux=0"),
    ("boot.mce", "mce=ignore_ce"),
    ("boot.ipv6.disable", "ipv6.disable=1"),
    ("boot.audit", "audit=0"),
    ("boot.nmi_watchdog", "nmi_watchdog=0"),
    ("boot.hugepagesz", "hugepagesz=2MB"),
    ("boot.hugepages", "hugepages=6000"),
    ("boot.default_hugepagesz", "default_hugepagesz=2MB"),
    ("boot.transparent_hugepage", "transparent_hugepage=never"),
    ("boot.tsc", "tsc=reliable"),
    ("boot.pcie_aspm", "pcie_aspm=off"),
    ("boot.cpuidle.off", "cpuidle.off=1"),
    ("boot.rcu_nocb_poll", "rcu_nocb_poll"),
    ("boot.idle", "idle=poll"),
    ("boot.processor.max_cstate", "processor.max_cstate=0"),
    ("boot.nohz", "nohz=on"),
    ("boot.nohz_full", "nohz_full={isolated}"),
    ("boot.rcu_nocbs", "rcu_nocbs={isolated}"),
    ("boot.tuned.non_isolcpus", "tuned.non_isolcpus={mask}"),
    ("boot.intel_pstate", "intel_pstate=disable"),
    ("boot.nosoftlockup", "nosoftlockup"),
];

/// The words in their order.
pub(super) fn boot_words(brief: &Brief<'_>) -> Vec<BootWord> {
    let planned = planned_tokens(brief);
    let is_possible = |word: &str| !brief.isolated().is_empty() || !word.contains('{');
    if brief.is_guide() {
        let words = GUIDE.iter().filter(|(_, word)| is_possible(word));
        words.map(|(setting, word)| guide_word(brief, &planned, setting, word)).collect()
    } else {
        wanted_words(brief, &planned)
    }
}

fn planned_tokens<'a>(brief: &'a Brief<'_>) -> Vec<&'a BootToken> {
    brief.plan.changes.iter().flat_map(|change| change.target.boot_tokens()).collect()
}

/// Correct parameters are already on the host's line. TuneD replaces its part of the line as a whole, so
/// they are repeated, as are present parameters without effect.
fn guide_word(brief: &Brief<'_>, planned: &[&BootToken], setting: &str, word: &str) -> BootWord {
    let is_planned = planned.iter().any(|token| token.setting == setting);
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    match brief.why_left_out(setting) {
        Some(left) if !is_planned && !stands(brief, name, value) => {
            BootWord::LeftOut(word.to_owned(), format!("{setting}: {}", left.text))
        }
        _ => BootWord::Set(word.to_owned()),
    }
}

/// True if each occurrence of a parameter on the present line has this value, and there is one.
fn stands(brief: &Brief<'_>, name: &str, value: &str) -> bool {
    let line = brief.context.host.kernel.tokens();
    let mut standing = line.all(name).map(Option::unwrap_or_default).peekable();
    standing.peek().is_some() && standing.all(|found| same_meaning(found, value))
}

/// All planned parameters, and those of the profile that are already on the line.
fn wanted_words(brief: &Brief<'_>, planned: &[&BootToken]) -> Vec<BootWord> {
    let mut words = Vec::new();
    for setting in brief.context.catalogue.settings().filter(|setting| setting.layer == Layer::Boot) {
        for token in setting.proposal(brief.context).tokens {
            let Some(value) = &token.value else { continue };
            let is_planned = planned.iter().any(|other| other.name == token.name);
            let word = if value.is_empty() { token.name.clone() } else { format!("{}={value}", token.name) };
            if is_planned || stands(brief, &token.name, value) {
                words.push(BootWord::Set(word));
            } else if let Some(left) = brief.why_left_out(setting.id) {
                words.push(BootWord::LeftOut(word, format!("{}: {}", setting.id, left.text)));
            }
        }
    }
    words.dedup();
    words
}

/// The expected command line after the reboot: the present one without TuneD's part and the words to remove, followed
/// by `words`.
pub(super) fn expected_line(brief: &Brief<'_>, words: &str) -> String {
    let line = brief.context.host.kernel.tokens();
    let present = without_tuned(brief, &line);
    let in_the_way = in_the_way(brief, words);
    let kept = present.into_iter().filter(|word| !in_the_way.iter().any(|other| other == word));
    boot_line(&kept.chain(split(words)).collect::<Vec<_>>().join(" ")).0
}

/// Words of the boot loader's own configuration that make words of the profile useless: TuneD only appends. The kernel
/// uses the first value of some parameters, and the plan removes others.
pub(super) fn in_the_way(brief: &Brief<'_>, words: &str) -> Vec<String> {
    let added = CommandLine::parse(words);
    let planned = planned_tokens(brief);
    let is_removed =
        |name: &str| planned.iter().any(|token| token.value.is_none() && same_name(&token.name, name));
    let is_first = |name: &str, value: &str| {
        Repeat::of(name) == Repeat::First
            && added.in_force(name).is_some_and(|other| !same_meaning(other, value))
    };
    let line = brief.context.host.kernel.tokens();
    let present = without_tuned(brief, &line).into_iter().filter(|word| {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        is_removed(name) || is_first(name, value)
    });
    present.map(one_line).collect()
}

/// The words of the present line without TuneD's part.
fn without_tuned<'a>(brief: &Brief<'_>, line: &'a CommandLine) -> Vec<&'a str> {
    let by_tuned = brief.context.host.file(lowlat_settings::change::tuned::BOOTCMDLINE);
    let by_tuned = by_tuned
        .text()
        .lines()
        .find_map(|line| line.trim().strip_prefix("TUNED_BOOT_CMDLINE="))
        .map(|value| value.trim().trim_matches('"'))
        .unwrap_or_default();
    let mut present = split(line.raw());
    let added = split(by_tuned);
    let at =
        (!added.is_empty()).then(|| present.windows(added.len()).position(|part| part == added)).flatten();
    if let Some(at) = at {
        present.drain(at..at + added.len());
    }
    present
}
