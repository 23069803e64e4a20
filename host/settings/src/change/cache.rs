//! Partitions of caches: ways and bandwidth for the isolated CPUs, through resctrl.

use super::{Moment, Proposal, Target, WhyLeftOut};
use crate::{Context, Setting};
use lowlat_host::{
    CpuSet, Reading,
    resctrl::{DEFAULT_GROUP, Group, Resctrl, Resource, domains, level_of},
};

/// The setting that partitions caches.
pub const SETTING: &str = "sysfs.resctrl.ways";
/// The group of the isolated CPUs.
pub const GROUP: &str = "lowlat";
/// Flags of CPUs with cache allocation.
pub const FLAGS: [&str; 2] = ["cat_l3", "cat_l2"];
/// The unit that mounts resctrl.
const MOUNT_UNIT: &str = "sys-fs-resctrl.mount";
const MOUNT_FILE: &str = "# Written by lowlat; changes are lost when it applies a plan.
[Unit]
Description=Allocation of caches (resctrl)
DefaultDependencies=no
ConditionPathExists=/sys/fs/resctrl
Before=lowlat.service

[Mount]
What=resctrl
Where=/sys/fs/resctrl
Type=resctrl

[Install]
WantedBy=multi-user.target
";
/// Bandwidth of housekeeping if resctrl counts in percent.
const HOUSEKEEPING_PERCENT: u64 = 50;
const WHOLE_PERCENT: u64 = 100;

/// The partition of the isolated CPUs, if the role requests one: first resctrl is mounted, then its groups are set.
pub fn partition(context: &Context<'_>, _: &Setting) -> Proposal {
    if !context.role.is_partitioning_cache {
        return Proposal::not(WhyLeftOut::YourChoice, "`lowlat cache partition` plans it");
    }
    match Resctrl::of(context.host) {
        None => mount(context),
        Some(resctrl) => match groups(context, &resctrl) {
            Ok(proposal) => proposal,
            Err((why, text)) => Proposal::not(why, text),
        },
    }
}

fn mount(context: &Context<'_>) -> Proposal {
    let unit = Target::Service { unit: MOUNT_UNIT.to_owned() };
    let file = Target::OwnedFile { path: format!("/etc/systemd/system/{MOUNT_UNIT}") };
    let before = unit.kind().present(context.host);
    Proposal::default()
        .step_at(Moment::AtBoot, file, Reading::Absent, MOUNT_FILE)
        .step(unit, before, "active, enabled")
        .but_not(
            WhyLeftOut::ByAnother,
            "the ways are planned once resctrl is mounted, which shows their number",
        )
}

/// The two groups of the partition.
fn groups(context: &Context<'_>, resctrl: &Resctrl) -> Result<Proposal, (WhyLeftOut, String)> {
    if let Some(text) = used_by_others(resctrl) {
        return Err((WhyLeftOut::YourChoice, text));
    }
    if resctrl.resources.values().any(|resource| resource.groups_max == 1) {
        return Err((
            WhyLeftOut::Hardware,
            "the CPU has one class of service, so no second group".to_owned(),
        ));
    }
    let isolated = &context.allocation.isolated;
    let mut ours = Group { cpus: isolated.clone(), schemata: resctrl.default.clone() };
    let mut others = Group { cpus: CpuSet::new(), schemata: resctrl.default.clone() };
    let mut left = Vec::new();
    for (name, resource) in &resctrl.resources {
        let level = level_of(name).unwrap_or(3);
        for (domain, cpus) in shared(context, level) {
            let present = resctrl.default.0.get(name).and_then(|values| values.get(&domain)).copied();
            let Some(present) = present else { continue };
            let (mine, theirs) = match resource.mask {
                Some(mask) => split(mask, resource, &cpus, isolated).ok_or_else(|| {
                    (WhyLeftOut::Hardware, format!("{name} has too few ways for two groups"))
                })?,
                None if present <= WHOLE_PERCENT => (WHOLE_PERCENT, percent(resource)),
                None => {
                    left.push(format!(
                        "{name} limits absolute bandwidth here; set it for the default group yourself"
                    ));
                    continue;
                }
            };
            for (group, value) in [(&mut ours, mine), (&mut others, theirs)] {
                group.schemata.0.entry(name.clone()).or_default().insert(domain, value);
            }
        }
    }
    let mut proposal = Proposal::default();
    for (name, group) in [(GROUP, &ours), (DEFAULT_GROUP, &others)] {
        let target = Target::CacheGroup { group: name.to_owned() };
        let before = target.kind().present(context.host);
        proposal = proposal.step(target, before, group.to_line());
    }
    left.dedup();
    Ok(left.into_iter().fold(proposal, |proposal, text| proposal.but_not(WhyLeftOut::YourChoice, text)))
}

/// The reason why resctrl belongs to another program; none if it is free or lowlat's.
pub fn used_by_others(resctrl: &Resctrl) -> Option<String> {
    let names: Vec<&str> = resctrl.groups.keys().map(String::as_str).filter(|name| *name != GROUP).collect();
    if !names.is_empty() {
        return Some(format!(
            "another program uses resctrl (groups {}); lowlat changes nothing there",
            names.join(", ")
        ));
    }
    let is_limited = !resctrl.groups.contains_key(GROUP) && !resctrl.is_default_whole();
    is_limited
        .then(|| "another program limits resctrl's default group; lowlat changes nothing there".to_owned())
}

/// The caches of a level that isolated CPUs share with others, by the number of resctrl's domain.
fn shared(context: &Context<'_>, level: u8) -> Vec<(u32, CpuSet)> {
    let isolated = &context.allocation.isolated;
    let is_shared = |cpus: &CpuSet| !cpus.is_disjoint(isolated) && !cpus.is_subset(isolated);
    domains(context.host, level).into_iter().filter(|(_, cpus)| is_shared(cpus)).collect()
}

/// The ways of the isolated CPUs and of the others: contiguous, as older Intel CPUs require. Each side gets ways in
/// proportion to its CPUs, the isolated CPUs at least half. Ways that devices also use go to the others.
fn split(mask: u64, resource: &Resource, cpus: &CpuSet, isolated: &CpuSet) -> Option<(u64, u64)> {
    let ways = mask.count_ones();
    let least = resource.bits_min.max(1);
    if ways < 2 * least {
        return None;
    }
    let count = |cpus: &CpuSet| u32::try_from(cpus.iter().count()).unwrap_or(u32::MAX);
    let house = count(&cpus.difference(isolated));
    let share = (ways * house).div_ceil(count(cpus).max(1));
    let house = share.clamp(least, (ways / 2).max(least));
    let low = (1_u64 << house) - 1;
    let high = low << (ways - house);
    let devices = |ways: u64| (ways & resource.shareable).count_ones();
    let theirs = if devices(low) > devices(high) { low } else { high };
    Some((mask & !theirs, theirs))
}

/// The bandwidth of housekeeping in steps of the CPU.
fn percent(resource: &Resource) -> u64 {
    let step = resource.step.max(1);
    (HOUSEKEEPING_PERCENT.div_ceil(step) * step)
        .clamp(resource.bandwidth_min.min(WHOLE_PERCENT), WHOLE_PERCENT)
}

/// True if the isolated CPUs use ways that the default group cannot fill, in every cache that they share.
pub fn is_apart(context: &Context<'_>, resctrl: &Resctrl) -> bool {
    let isolated = &context.allocation.isolated;
    let ways = |group: &Group, name: &str, domain: u32| {
        group.schemata.0.get(name).and_then(|values| values.get(&domain)).copied().unwrap_or(0)
    };
    let others = Group { cpus: CpuSet::new(), schemata: resctrl.default.clone() };
    let mut is_any = false;
    for name in resctrl.resources.iter().filter(|(_, found)| found.mask.is_some()).map(|(name, _)| name) {
        for (domain, cpus) in shared(context, level_of(name).unwrap_or(3)) {
            is_any = true;
            let has_own = |cpu| {
                let group = resctrl.groups.values().find(|group| group.cpus.contains(cpu));
                group.is_some_and(|group| ways(group, name, domain) & ways(&others, name, domain) == 0)
            };
            if !cpus.intersection(isolated).iter().all(has_own) {
                return false;
            }
        }
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_of(mask: u64, shareable: u64, house: u32, all: u32) -> Option<(u64, u64)> {
        let resource = Resource { mask: Some(mask), bits_min: 1, shareable, ..Resource::default() };
        let cpus: CpuSet = (0..all).collect();
        let isolated: CpuSet = (house..all).collect();
        split(mask, &resource, &cpus, &isolated)
    }

    #[test]
    fn ways_are_split_by_cpus_and_devices_stay_with_housekeeping() {
        // 11 ways, of which devices use the upper two. One of eight CPUs is for housekeeping.
        assert_eq!(split_of(0x7ff, 0x600, 1, 8), Some((0x1ff, 0x600)));
        assert_eq!(split_of(0x7ff, 0x3, 1, 8), Some((0x7fc, 0x3)));
        // The isolated CPUs get at least half.
        assert_eq!(split_of(0xffff, 0, 14, 16), Some((0x00ff, 0xff00)));
        assert_eq!(split_of(0x3, 0, 1, 2), Some((0x1, 0x2)));
        assert_eq!(split_of(0x1, 0, 1, 2), None);
    }

    #[test]
    fn bandwidth_is_rounded_up_to_a_step() {
        let of = |step, bandwidth_min| percent(&Resource { step, bandwidth_min, ..Resource::default() });
        assert_eq!((of(10, 10), of(20, 10), of(10, 70), of(0, 0)), (50, 60, 70, 50));
    }
}
