//! Findings by layer, the layer with the worst finding first.

use lowlat_settings::{Finding, Layer, Verdict, audit::Audit};

/// The findings of one layer, worst first.
#[derive(Debug)]
pub struct LayerGroup<'a> {
    /// The layer.
    pub layer: Layer,
    /// Its findings.
    pub findings: Vec<&'a Finding>,
}

impl LayerGroup<'_> {
    /// How many findings have one of these verdicts.
    pub fn count(&self, is_counted: impl Fn(Verdict) -> bool) -> usize {
        self.findings.iter().filter(|finding| is_counted(finding.verdict)).count()
    }
}

/// Groups findings by layer. Layers whose worst findings weigh alike stand in the order in which people set a host up.
pub fn by_layer<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<LayerGroup<'a>> {
    let mut groups: Vec<LayerGroup<'a>> = Vec::new();
    for finding in findings {
        match groups.iter_mut().find(|group| group.layer == finding.layer) {
            Some(group) => group.findings.push(finding),
            None => groups.push(LayerGroup { layer: finding.layer, findings: vec![finding] }),
        }
    }
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

/// What a layer is, for headings.
pub fn layer_title(word: &str) -> &str {
    match word {
        "firmware" => "Firmware set-up",
        "boot" => "Kernel command line",
        "sysctl" => "Sysctl",
        "debugfs" => "Scheduler and kernel debug knobs",
        "sysfs" => "Devices and CPU controls",
        "memory" => "Memory",
        "irq" => "Interrupts",
        "kthread" => "Kernel threads and workqueues",
        "nic" => "Network interfaces",
        "service" => "Services",
        "readiness" => "Readiness at this moment",
        other => other,
    }
}

/// What the audit says in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Settings that something should be done about.
    pub faults: usize,
    /// Settings that count: the good ones and the faults.
    pub counting: usize,
    /// Settings that could not be told.
    pub unknown: usize,
    /// Faults whose change takes a reboot.
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

    /// One sentence: "9 of 24 settings are not as profile trading wants".
    pub fn sentence(&self, audit: &Audit) -> String {
        let profile = audit.profile;
        match (self.faults, self.counting) {
            (_, 0) => "No setting could be judged.".to_owned(),
            (0, 1) => format!("The one setting that could be judged is as profile {profile} wants."),
            (0, all) => format!("All {all} settings that could be judged are as profile {profile} wants."),
            (1, all) => format!("1 of {all} settings is not as profile {profile} wants."),
            (faults, all) => format!("{faults} of {all} settings are not as profile {profile} wants."),
        }
    }
}
