//! How quiet the kernel keeps a CPU, as opposed to what was only chosen for it.

use crate::{CpuId, CpuSet, HostSnapshot};
use serde::{Deserialize, Serialize};

/// The isolation of one CPU, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Isolated => "isolated",
            Self::NohzFull => "nohz_full",
            Self::Chosen => "chosen",
        }
    }
}

/// The CPUs of each isolation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IsolatedCpus {
    isolated: CpuSet,
    nohz_full: CpuSet,
    chosen: CpuSet,
}

impl IsolatedCpus {
    /// Collects what the host's kernel shows, and the CPUs chosen for isolation.
    pub fn of(host: &HostSnapshot, chosen: &CpuSet) -> Self {
        let nohz_full = host.topology.nohz_full.known().cloned().unwrap_or_default();
        Self { isolated: host.cpus_isolated(), nohz_full, chosen: chosen.clone() }
    }

    /// The CPUs of each kind of isolation; no CPU is in two of them.
    pub fn each(&self) -> [(Isolation, CpuSet); 3] {
        let ticks = self.nohz_full.difference(&self.isolated);
        let chosen = self.chosen.difference(&self.isolated.union(&self.nohz_full));
        [
            (Isolation::Isolated, self.isolated.clone()),
            (Isolation::NohzFull, ticks),
            (Isolation::Chosen, chosen),
        ]
    }

    /// The isolation of a CPU; `None` if it has none and was not chosen.
    pub fn get(&self, cpu: CpuId) -> Option<Isolation> {
        if self.isolated.contains(cpu) {
            Some(Isolation::Isolated)
        } else if self.nohz_full.contains(cpu) {
            Some(Isolation::NohzFull)
        } else {
            self.chosen.contains(cpu).then_some(Isolation::Chosen)
        }
    }
}

impl HostSnapshot {
    /// CPUs without ordinary threads, through isolcpus= or an isolated cpuset partition.
    pub fn cpus_isolated(&self) -> CpuSet {
        let mut isolated = self.topology.isolated.known().cloned().unwrap_or_default();
        let partitions = self.services.cpuset_partitions.iter().filter(|partition| partition.is_isolated());
        isolated.extend(partitions.filter_map(|partition| partition.cpus.known()).flat_map(CpuSet::iter));
        isolated
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
        let each = all.each().map(|(_, cpus)| cpus.to_list());
        assert_eq!(each, ["1-2", "3", "4-5"]);
        assert_eq!(found, [None, Some(Isolated), Some(Isolated), Some(NohzFull), Some(Chosen), Some(Chosen)]);
    }

    #[test]
    fn a_kernel_that_shows_nothing_isolates_nothing() {
        let all = IsolatedCpus::of(&HostSnapshot::default(), &set("1"));
        assert_eq!((all.get(0), all.get(1)), (None, Some(Chosen)));
    }
}
