//! Longest interruptions with their explanations.

use lowlat_host::CpuId;
use lowlat_jitter::{CpuCauses, Explained, Group, Interruption, JitterRecord};
use std::collections::BTreeMap;

/// One of the longest interruptions, with its explanation.
#[derive(Debug, Clone, Copy)]
pub struct Ranked<'a> {
    pub cpu: CpuId,
    pub interruption: Interruption,
    /// Explanation; `None` if it was not compared with a trace.
    pub explained: Option<&'a Explained>,
    /// Interruptions of other CPUs at the same time, if the record keeps that group.
    pub group: Option<&'a Group>,
}

/// Returns up to `count_max` of the longest interruptions of the wanted CPUs, longest first.
pub fn ranked(record: &JitterRecord, is_wanted: impl Fn(CpuId) -> bool, count_max: usize) -> Vec<Ranked<'_>> {
    let wanted = record.cpus.iter().filter(|cpu| is_wanted(cpu.cpu));
    let mut all: Vec<(CpuId, Interruption)> =
        wanted.flat_map(|cpu| cpu.worst.iter().map(|worst| (cpu.cpu, *worst))).collect();
    all.sort_by_key(|(cpu, worst)| (std::cmp::Reverse(worst.length_ns), worst.at_ns, *cpu));
    all.truncate(count_max);
    let causes = record.causes.as_ref();
    let by_cpu: BTreeMap<CpuId, &CpuCauses> =
        causes.iter().flat_map(|causes| &causes.cpus).map(|cpu| (cpu.cpu, cpu)).collect();
    let groups = causes.and_then(|causes| causes.groups.as_ref()).map_or(&[][..], |groups| &groups.worst);
    all.into_iter()
        .map(|(cpu, interruption)| {
            let known =
                by_cpu.get(&cpu).into_iter().flat_map(|causes| causes.worst.iter().chain(&causes.first));
            let is_it = |other: CpuId, of: &Interruption| other == cpu && *of == interruption;
            Ranked {
                cpu,
                interruption,
                explained: known.into_iter().find(|explained| explained.interruption == interruption),
                group: groups
                    .iter()
                    .find(|group| group.members.iter().any(|member| is_it(member.cpu, &member.interruption))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter::{GroupMember, JitterCauses, JitterCpu, JitterGroups};

    #[test]
    fn the_longest_come_with_their_explanation_and_their_group() {
        let hit = |at_ns, length_ns| Interruption { at_ns, length_ns };
        let cpu =
            |cpu, worst: &[Interruption]| JitterCpu { cpu, worst: worst.to_vec(), ..JitterCpu::default() };
        let explained = Explained { interruption: hit(5, 900), ..Explained::default() };
        let member = GroupMember { cpu: 2, interruption: hit(9, 700), ..GroupMember::default() };
        let record = JitterRecord {
            cpus: vec![cpu(1, &[hit(5, 900), hit(8, 100)]), cpu(2, &[hit(9, 700)])],
            causes: Some(JitterCauses {
                cpus: vec![CpuCauses { cpu: 1, worst: vec![explained], ..CpuCauses::default() }],
                groups: Some(JitterGroups {
                    worst: vec![Group { members: vec![member] }],
                    ..JitterGroups::default()
                }),
                ..JitterCauses::default()
            }),
            ..JitterRecord::default()
        };
        let all = ranked(&record, |_| true, 2);
        let short: Vec<_> =
            all.iter().map(|of| (of.cpu, of.explained.is_some(), of.group.is_some())).collect();
        assert_eq!(short, [(1, true, false), (2, false, true)]);
        assert_eq!(ranked(&record, |cpu| cpu == 2, 9).len(), 1);
    }
}
