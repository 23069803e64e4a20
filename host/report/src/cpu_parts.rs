//! Purpose of each CPU of a host.

use lowlat_host::{Allocation, CPU_ID_MAX, CpuId, CpuSet, HostSnapshot, IsolatedCpus, Isolation};

/// State and purpose of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuPart {
    Isolated,
    /// Tickless, and not isolated otherwise.
    NohzFull,
    /// Chosen for trading threads; the kernel does not isolate it.
    Chosen,
    /// Chosen for the kernel, services and interrupts.
    Housekeeping,
    /// In neither set of the allocation.
    Neither,
    Offline,
}

/// Explanation of [`CpuPart::Chosen`], for tables that show it.
pub const CHOSEN_NOTE: &str = "chosen: selected for isolation, but not yet isolated by the kernel";

/// Purposes of the CPUs of a host.
#[derive(Debug)]
pub struct CpuParts<'a> {
    isolated: IsolatedCpus,
    housekeeping: &'a CpuSet,
    offline: &'a CpuSet,
}

impl<'a> CpuParts<'a> {
    /// Returns the parts of a host with its allocation.
    pub fn of(host: &'a HostSnapshot, allocation: &'a Allocation) -> Self {
        Self {
            isolated: IsolatedCpus::of(host, &allocation.isolated),
            housekeeping: &allocation.housekeeping,
            offline: &host.topology.offline,
        }
    }

    /// Returns the purpose of a CPU. The kernel's state takes precedence over the allocation.
    pub fn get(&self, cpu: CpuId) -> CpuPart {
        if self.offline.contains(cpu) {
            return CpuPart::Offline;
        }
        match self.isolated.get(cpu) {
            Some(isolation) => CpuPart::from(isolation),
            None if self.housekeeping.contains(cpu) => CpuPart::Housekeeping,
            None => CpuPart::Neither,
        }
    }

    /// Splits these CPUs by part, without empty parts.
    pub fn each(&self, cpus: &CpuSet) -> Vec<(CpuPart, CpuSet)> {
        let mut left = cpus.difference(self.offline);
        let mut parts = vec![(CpuPart::Offline, cpus.intersection(self.offline))];
        let isolated = self.isolated.each.iter().map(|(isolation, cpus)| (CpuPart::from(*isolation), cpus));
        for (part, cpus) in isolated.chain([(CpuPart::Housekeeping, self.housekeeping)]) {
            parts.push((part, left.intersection(cpus)));
            left = left.difference(cpus);
        }
        parts.push((CpuPart::Neither, left));
        parts.retain(|(_, cpus)| !cpus.is_empty());
        parts.sort_by_key(|(part, _)| *part);
        parts
    }
}

impl From<Isolation> for CpuPart {
    fn from(isolation: Isolation) -> Self {
        match isolation {
            Isolation::Isolated => Self::Isolated,
            Isolation::NohzFull => Self::NohzFull,
            Isolation::Chosen => Self::Chosen,
        }
    }
}

impl CpuPart {
    /// Every part that can be measured, in order.
    pub const MEASURED: [Self; 5] =
        [Self::Isolated, Self::NohzFull, Self::Chosen, Self::Housekeeping, Self::Neither];

    /// Returns whether trading threads should run there.
    pub fn is_for_trading(self) -> bool {
        matches!(self, Self::Isolated | Self::NohzFull | Self::Chosen)
    }

    /// Returns the words for titles and legends.
    pub fn phrase(self) -> &'static str {
        if self == Self::Chosen { "chosen for isolation" } else { self.word() }
    }

    /// Returns the word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Isolated => Isolation::Isolated.word(),
            Self::NohzFull => Isolation::NohzFull.word(),
            Self::Chosen => Isolation::Chosen.word(),
            Self::Housekeeping => "housekeeping",
            Self::Neither => "other",
            Self::Offline => "offline",
        }
    }

    /// Returns the CSS class of its colour.
    pub fn class(self) -> &'static str {
        match self {
            Self::Isolated => "iso",
            Self::NohzFull => "nohz",
            Self::Chosen => "chosen",
            Self::Housekeeping => "hk",
            Self::Neither => "other",
            Self::Offline => "off",
        }
    }
}

/// Collects CPU numbers from a document. Impossible numbers are left out, so that the set stays small.
pub fn bounded(cpus: impl Iterator<Item = CpuId>) -> CpuSet {
    cpus.filter(|cpu| *cpu <= CPU_ID_MAX).collect()
}
