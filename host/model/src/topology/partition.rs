//! Groups CPUs by what each CPU claims about its neighbours.

use super::Group;
use crate::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// A CPU's claim about its group.
#[derive(Debug, Clone, Default)]
pub(super) struct Claim {
    /// The kernel's number of the group, -1 if it has none.
    pub(super) id: i64,
    /// The CPUs in the same group. `None` if the CPU makes no claim.
    pub(super) cpus: Option<CpuSet>,
    /// True if the kernel named the CPUs. Otherwise they were grouped by their numbers, which is not a claim of the
    /// kernel.
    pub(super) is_stated: bool,
}

/// The claims of all CPUs about one kind of group.
pub(super) struct GroupClaims<'a> {
    /// The kind, as a plural for the oddities: "packages".
    pub(super) kind: &'a str,
    pub(super) online: &'a CpuSet,
    pub(super) by_cpu: BTreeMap<CpuId, Claim>,
}

/// CPUs whose claims were ignored, by the reason.
#[derive(Debug, Default)]
struct Lies {
    leaves_itself_out: CpuSet,
    names_offline: CpuSet,
    disagrees: CpuSet,
}

impl GroupClaims<'_> {
    /// Disjoint groups, each within one of `bounds`, by lowest CPU. Two CPUs are in one group if neither
    /// denies it; contradictions are added to `oddities`. A CPU without a claim joins the CPUs that name it,
    /// otherwise it is alone.
    pub(super) fn partition(&self, bounds: Option<&[Group]>, oddities: &mut Vec<String>) -> Vec<Group> {
        let bound_of: BTreeMap<CpuId, &CpuSet> = bounds
            .unwrap_or_default()
            .iter()
            .flat_map(|group| group.cpus.iter().map(|cpu| (cpu, &group.cpus)))
            .collect();
        let mut lies = Lies::default();
        let mut left = self.online.clone();
        let mut groups = Vec::new();
        for cpu in self.online.iter() {
            if !left.contains(cpu) {
                continue;
            }
            let bound = bound_of.get(&cpu).copied().unwrap_or(self.online);
            let cpus = self.members(cpu, &left, bound, &mut lies);
            cpus.iter().for_each(|member| {
                left.remove(member);
            });
            groups.push(Group { id: self.by_cpu.get(&cpu).map_or(-1, |claim| claim.id), cpus });
        }
        self.report(lies, oddities);
        groups
    }

    fn members(&self, cpu: CpuId, left: &CpuSet, bound: &CpuSet, lies: &mut Lies) -> CpuSet {
        let mut members = CpuSet::of(cpu);
        let Some((claim, named)) = self.named_by(cpu) else { return members };
        let online = named.intersection(self.online);
        let free = online.intersection(left).intersection(bound);
        for other in free.iter().filter(|other| *other != cpu) {
            match self.named_by(other) {
                Some((_, theirs)) if !theirs.contains(cpu) => {
                    lies.disagrees.insert(cpu);
                }
                _ => {
                    members.insert(other);
                }
            }
        }
        if claim.is_stated {
            if !online.is_subset(&free) {
                lies.disagrees.insert(cpu);
            }
            if &online != named {
                lies.names_offline.insert(cpu);
            }
            self.note_missing_selves(&members, lies);
        }
        members
    }

    fn named_by(&self, cpu: CpuId) -> Option<(&Claim, &CpuSet)> {
        let claim = self.by_cpu.get(&cpu)?;
        Some((claim, claim.cpus.as_ref()?))
    }

    fn note_missing_selves(&self, members: &CpuSet, lies: &mut Lies) {
        for cpu in members.iter() {
            if self.named_by(cpu).is_some_and(|(_, named)| !named.contains(cpu)) {
                lies.leaves_itself_out.insert(cpu);
            }
        }
    }

    fn report(&self, lies: Lies, oddities: &mut Vec<String>) {
        let kind = self.kind;
        for (cpus, what) in [
            (lies.leaves_itself_out, "the CPU itself is missing"),
            (lies.names_offline, "offline CPUs are listed"),
            (lies.disagrees, "other CPUs disagree"),
        ] {
            if !cpus.is_empty() {
                oddities.push(format!("{cpus:#}: {what} in the masks of the {kind}."));
            }
        }
    }
}
