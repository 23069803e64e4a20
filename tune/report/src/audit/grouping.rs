//! Findings grouped by layer, with the layer of the worst finding first.

use lowlat_settings::{Checked, Claim, Finding, Layer, Verdict, audit::Audit};
use std::fmt::Display;

/// Findings of one layer, worst first.
#[derive(Debug)]
pub struct LayerGroup<'a> {
    pub layer: Layer,
    pub findings: Vec<&'a Finding>,
}

impl LayerGroup<'_> {
    /// Counts the findings with one of these verdicts.
    pub fn count(&self, is_counted: impl Fn(Verdict) -> bool) -> usize {
        self.findings.iter().filter(|finding| is_counted(finding.verdict)).count()
    }
}

/// Gathers values by key. Keys and the values of each keep the order of their first appearance.
pub fn grouped<K: PartialEq, V>(pairs: impl Iterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// Returns "3 good, 1 unknown" from the counts that are not zero.
pub fn listed<'a, N: Display + Default + PartialEq>(
    counts: impl IntoIterator<Item = (N, &'a str)>,
) -> String {
    let counts = counts.into_iter().filter(|(count, _)| *count != N::default());
    counts.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Groups findings by layer. Layers with equally bad findings keep the order in which people set up a host.
pub fn by_layer<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<LayerGroup<'a>> {
    let groups = grouped(findings.map(|finding| (finding.layer, finding))).into_iter();
    let mut groups: Vec<_> = groups.map(|(layer, findings)| LayerGroup { layer, findings }).collect();
    for group in &mut groups {
        group.findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    }
    groups.sort_by_key(|group| {
        let (class, weight, place, _) =
            group.findings.first().map_or_else(Default::default, |worst| worst.rank());
        (class, weight, place, Layer::ALL.iter().position(|layer| *layer == group.layer))
    });
    groups
}

/// Returns the title of a layer.
pub fn layer_title(word: &str) -> &str {
    match word {
        "firmware" => "Firmware",
        "kernel" => "Kernel configuration",
        "boot" => "Kernel command line",
        "sysctl" => "Sysctls",
        "debugfs" => "Scheduler and debug settings",
        "sysfs" => "Devices and CPU controls",
        "memory" => "Memory",
        "irq" => "Interrupts",
        "kthread" => "Kernel threads and workqueues",
        "nic" => "Network interfaces",
        "service" => "Services",
        "readiness" => "Readiness",
        other => other,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Number of settings to change.
    pub faults: usize,
    /// Settings that were judged: good ones and faults.
    pub counting: usize,
    /// Settings that could not be checked.
    pub unknown: usize,
    /// Faults whose change needs a reboot.
    pub reboots: usize,
}

impl Tally {
    /// Counts the findings of an audit.
    pub fn of(audit: &Audit) -> Self {
        let count = |is: fn(&Finding) -> bool| audit.findings.iter().filter(|finding| is(finding)).count();
        Self {
            faults: count(|finding| finding.verdict.is_fault()),
            counting: count(|finding| finding.verdict.counts()),
            unknown: count(|finding| finding.verdict == Verdict::Unknown),
            reboots: count(|finding| finding.verdict.is_fault() && finding.needs_reboot),
        }
    }

    fn checked(self) -> Checked {
        Checked { checked: self.counting, unknown: self.unknown }
    }

    /// Returns " 44 could not be checked." to be added to the sentence; empty if the sentence says it.
    pub fn not_checked(self) -> String {
        match self.checked().claim(self.faults > 0) {
            Claim::NotJudged => String::new(),
            _ if self.unknown == 0 => String::new(),
            _ => format!(" {} could not be checked.", self.unknown),
        }
    }

    /// Returns one sentence: "9 of 24 settings differ from profile trading."
    pub fn sentence(&self, audit: &Audit) -> String {
        let profile = audit.profile;
        if let Some(why) = self.checked().not_judged(self.faults > 0, "settings") {
            return why;
        }
        match (self.faults, self.counting) {
            (_, 0) => "No setting could be checked.".to_owned(),
            (0, 1) => format!("The only setting that could be checked matches profile {profile}."),
            (0, all) => format!("All {all} settings that could be checked match profile {profile}."),
            (1, all) => format!("1 of {all} settings differs from profile {profile}."),
            (faults, all) => format!("{faults} of {all} settings differ from profile {profile}."),
        }
    }
}
