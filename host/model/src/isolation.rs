//! The isolation of each CPU: shown by the kernel, or only chosen.

use crate::{CpuId, CpuSet, HostSnapshot, kernel_version::KernelVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The CPU that starts the kernel, on x86 and arm64. It keeps the time for CPUs without a tick, so `nohz_full=` never
/// includes it (`tick_nohz_init`), and `irqaffinity=` always does (`irq_affinity_setup`).
pub const BOOT_CPU: CpuId = 0;

/// Warning for a user who isolates the boot CPU.
pub const BOOT_CPU_ISOLATED: &str = "CPU 0 is isolated, but it is the boot CPU: the kernel keeps its tick for timekeeping, so nohz_full= leaves it out, \
     and always adds it to irqaffinity=. Choose it for housekeeping instead.";

/// Flags of `isolcpus=`, and the first kernel that has each (kernel/sched/isolation.c).
pub const ISOLCPUS_FLAGS: &[(&str, KernelVersion)] = &[
    ("nohz", KernelVersion::new(4, 15)),
    ("domain", KernelVersion::new(4, 15)),
    ("managed_irq", KernelVersion::new(5, 6)),
];

/// Kernels from this one on skip an unknown flag; earlier ones reject the whole parameter.
pub const ISOLCPUS_SKIPS_FLAGS_SINCE: KernelVersion = KernelVersion::new(5, 8);

/// Flags that distributions added to earlier kernels: a part of the release, the first build of that version with the
/// flag, and the flag. Source: RHEL 8.2, and OpenShift 4.6 on it, isolate with managed_irq.
const BACKPORTED: &[(&str, (KernelVersion, u32), &str)] =
    &[(".el8", (KernelVersion::new(4, 18), 193), "managed_irq")];

/// The isolation of one CPU, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The kernel keeps ordinary threads off it: isolcpus= or an isolated cpuset partition.
    Isolated,
    /// The kernel stops the tick on it, and does not isolate it otherwise.
    NohzFull,
    /// It was chosen for isolation; the kernel shows none.
    Chosen,
}

impl Isolation {
    /// Returns the name for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::NohzFull => "nohz_full",
            Self::Chosen => "chosen",
        }
    }
}

/// The CPUs of each kind of isolation; no CPU is in two of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolatedCpus {
    pub each: [(Isolation, CpuSet); 3],
}

impl IsolatedCpus {
    /// Collects what the host's kernel shows, and the CPUs chosen for isolation.
    pub fn of(host: &HostSnapshot, chosen: &CpuSet) -> Self {
        let isolated = host.cpus_isolated();
        let nohz_full = host.topology.nohz_full.known().cloned().unwrap_or_default().difference(&isolated);
        let chosen = chosen.difference(&isolated.union(&nohz_full));
        Self {
            each: [
                (Isolation::Isolated, isolated),
                (Isolation::NohzFull, nohz_full),
                (Isolation::Chosen, chosen),
            ],
        }
    }

    /// The isolation of a CPU; `None` if it has none and was not chosen.
    pub fn get(&self, cpu: CpuId) -> Option<Isolation> {
        self.each.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(isolation, _)| *isolation)
    }
}

impl HostSnapshot {
    /// True if the kernel knows a flag of `isolcpus=`: shown by its effect, otherwise by version and distribution.
    /// `None` if the version is unknown.
    pub fn knows_isolcpus_flag(&self, flag: &str) -> Option<bool> {
        let (kernel, version) = (&self.kernel, self.kernel.version.known());
        let rejects = version.is_none_or(|version| *version < ISOLCPUS_SKIPS_FLAGS_SINCE);
        // A kernel that rejects the parameter for an unknown flag isolates nothing.
        let is_shown = self.topology.isolated.known().is_some_and(|cpus| !cpus.is_empty());
        if rejects && is_shown && kernel.tokens().flags("isolcpus").contains(&flag) {
            return Some(true);
        }
        let release = kernel.release.text();
        let build = release.split_once('-').and_then(|(_, build)| build.split('.').next()?.parse().ok());
        let is_backported = BACKPORTED.iter().any(|(part, since, known)| {
            *known == flag && release.contains(part) && version.copied().zip(build) >= Some(*since)
        });
        let since = ISOLCPUS_FLAGS.iter().find(|(known, _)| *known == flag).map(|(_, since)| since);
        version.map(|version| is_backported || since.is_some_and(|since| version >= since))
    }

    /// CPUs without ordinary threads, through isolcpus= or an isolated cpuset partition.
    pub fn cpus_isolated(&self) -> CpuSet {
        let mut isolated = self.topology.isolated.known().cloned().unwrap_or_default();
        let partitions = self.services.cpuset_partitions.iter().filter(|partition| partition.is_isolated());
        isolated.extend(partitions.filter_map(|partition| partition.cpus.known()).flat_map(CpuSet::iter));
        isolated
    }

    /// The online CPUs that the owner isolates, if all sources agree: `isolcpus=` and `nohz_full=` on the command line,
    /// what the kernel made of them, and isolated cpuset partitions.
    pub fn cpus_isolated_by_owner(&self) -> Option<CpuSet> {
        let topology = &self.topology;
        let line = self.kernel.tokens();
        let named = ["isolcpus", "nohz_full"].map(|name| line.cpus(name, topology.cpu_count())?.ok());
        let shown = [Some(self.cpus_isolated()), topology.nohz_full.known().cloned()];
        let found = named.into_iter().chain(shown).flatten().map(|cpus| cpus.intersection(&topology.online));
        let mut found = found.filter(|cpus| !cpus.is_empty());
        let first = found.next()?;
        (found.all(|cpus| cpus == first) && first != topology.online).then_some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::Isolation::{Chosen, Isolated, NohzFull};
    use super::*;
    use crate::{Reading, snapshot::CpusetPartition};

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    #[test]
    fn what_the_kernel_shows_comes_before_what_was_chosen() {
        let mut host = HostSnapshot::default();
        host.topology.isolated = Reading::Known(set("1"));
        host.topology.nohz_full = Reading::Known(set("1-3"));
        let partition = |state: &str, cpus: &str| CpusetPartition {
            group: "trading".into(),
            state: state.into(),
            cpus: Reading::Known(set(cpus)),
        };
        host.services.cpuset_partitions = vec![partition("isolated", "2"), partition("root", "4")];
        let all = IsolatedCpus::of(&host, &set("1-5"));
        let found: Vec<_> = (0..6).map(|cpu| all.get(cpu)).collect();
        let each = all.each.map(|(_, cpus)| cpus.to_list());
        assert_eq!(each, ["1-2", "3", "4-5"]);
        assert_eq!(found, [None, Some(Isolated), Some(Isolated), Some(NohzFull), Some(Chosen), Some(Chosen)]);
    }

    #[test]
    fn flags_are_known_by_effect_then_by_version_and_distribution() {
        let host = |release: &str, line: &str, isolated: &str| {
            let mut host = HostSnapshot::default();
            host.kernel.release = Reading::Known(release.into());
            host.kernel.version = Reading::from_option(KernelVersion::parse(release));
            host.kernel.command_line = Reading::Known(crate::cmdline::CommandLine::parse(line));
            host.topology.isolated = Reading::Known(set(isolated));
            host
        };
        let managed = "isolcpus=managed_irq,domain,1-3";
        for (release, line, isolated, domain, managed_irq) in [
            ("3.10.0-1160.el7.x86_64", "ro", "", Some(false), Some(false)),
            ("4.15.0-20-generic", "ro", "", Some(true), Some(false)),
            ("4.15.0-20-generic", managed, "1-3", Some(true), Some(true)),
            ("4.15.0-20-generic", managed, "", Some(true), Some(false)),
            ("4.18.0-147.5.1.el8_1.x86_64", "ro", "", Some(true), Some(false)),
            ("4.18.0-193.el8.x86_64", "ro", "", Some(true), Some(true)),
            ("4.18.0-553.16.1.el8_10.x86_64", managed, "", Some(true), Some(true)),
            ("5.6.0", "ro", "", Some(true), Some(true)),
            ("unreadable", "ro", "", None, None),
        ] {
            let host = host(release, line, isolated);
            let knows = ["domain", "managed_irq"].map(|flag| host.knows_isolcpus_flag(flag));
            assert_eq!(knows, [domain, managed_irq], "{release} {line} {isolated}");
        }
        let newer = host("6.1.0", "isolcpus=future,1-3", "1-3");
        assert_eq!(newer.knows_isolcpus_flag("future"), Some(false), "skipped, so the effect proves nothing");
    }

    #[test]
    fn the_owner_isolates_what_all_agree_on() {
        let of = |line: &str, isolated: &str, nohz_full: &str, partition: &str| {
            let mut host = HostSnapshot::default();
            host.topology.online = set("0-15");
            host.kernel.command_line = Reading::Known(crate::cmdline::CommandLine::parse(line));
            host.topology.isolated = Reading::Known(set(isolated));
            host.topology.nohz_full = Reading::Known(set(nohz_full));
            host.services.cpuset_partitions = vec![CpusetPartition {
                group: "trading".into(),
                state: "isolated".into(),
                cpus: Reading::Known(set(partition)),
            }];
            host.cpus_isolated_by_owner().map(|cpus| cpus.to_list())
        };
        let agreed = |cpus: &str| Some(cpus.to_owned());
        assert_eq!(of("isolcpus=domain,managed_irq,4-N nohz_full=4-N", "4-15", "4-15", ""), agreed("4-15"));
        assert_eq!(of("isolcpus=managed_irq,2-7,10-15 nohz_full=2-7,10-15", "", "", ""), agreed("2-7,10-15"));
        assert_eq!(of("isolcpus=3", "3", "", ""), agreed("3"));
        assert_eq!(of("nohz_full=4-15", "", "4-15", ""), agreed("4-15"));
        assert_eq!(of("", "", "", "8-15"), agreed("8-15"));
        // CPUs that are offline are no contradiction.
        assert_eq!(of("isolcpus=4-15,20-31 nohz_full=4-15", "4-15,20-31", "4-15", ""), agreed("4-15"));
        for (line, isolated, nohz_full, partition) in [
            ("", "", "", ""),
            ("isolcpus=4-15 nohz_full=2-15", "4-15", "2-15", ""),
            ("isolcpus=4-15", "2-15", "", ""),
            ("isolcpus=4-15", "4-15", "", "2-3"),
            ("isolcpus=0-15", "0-15", "", ""),
        ] {
            assert_eq!(of(line, isolated, nohz_full, partition), None, "{line}");
        }
    }

    #[test]
    fn a_kernel_that_shows_nothing_isolates_nothing() {
        let all = IsolatedCpus::of(&HostSnapshot::default(), &set("1"));
        assert_eq!((all.get(0), all.get(1)), (None, Some(Chosen)));
    }
}
