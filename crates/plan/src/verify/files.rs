//! Small files of /sys, /proc and debugfs.

use super::judge::{Look, Scene};
use super::{Row, culprit};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::{change::Change, same_meaning};

/// Files whose content is a mask, by the end of their path.
const MASKS: [&str; 4] = ["cpumask", "rps_cpus", "xps_cpus", "smp_affinity"];

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, path: &str) -> Row {
    let observed = in_force(scene, path);
    let is_planned = observed.known().is_some_and(|value| is_same(path, value, &change.after));
    let claims = culprit::of_path(scene, path);
    Look { at, change, what: path.to_owned(), observed, is_planned, claims }.judge(scene)
}

/// By meaning; a mask against the list or mask that was planned.
fn is_same(path: &str, observed: &str, planned: &str) -> bool {
    if same_meaning(observed, planned) {
        return true;
    }
    // The file for watchdogs is named a mask and holds a list (kernel/watchdog.c).
    let is_mask = MASKS.iter().any(|end| path.ends_with(end)) && !path.ends_with("watchdog_cpumask");
    let planned = CpuSet::parse_list(planned).or_else(|_| CpuSet::parse_mask(planned));
    is_mask && matches!((CpuSet::parse_mask(observed), planned), (Ok(a), Ok(b)) if a == b)
}

/// The value of a file. Readers of their own have those that the snapshot does not keep by path.
pub(super) fn in_force(scene: &Scene<'_>, path: &str) -> Reading<String> {
    let host = scene.host;
    let read = scene.file(path);
    if !read.is_absent() {
        return read;
    }
    let part = |at: usize| path.split('/').nth(at).unwrap_or_default();
    let policy = || {
        let cpu = part(5).strip_prefix("cpu").and_then(|number| number.parse().ok());
        cpu.and_then(|cpu| host.cpu.frequency.iter().find(|policy| policy.cpus.contains(cpu)))
    };
    let of_policy = |value: fn(&lowlat_host::snapshot::CpuFreq) -> Reading<String>| {
        policy().map_or(Reading::Absent, value)
    };
    match path {
        "/sys/kernel/mm/transparent_hugepage/enabled" => host.memory.thp_enabled.clone(),
        "/sys/kernel/mm/transparent_hugepage/defrag" => host.memory.thp_defrag.clone(),
        "/sys/kernel/mm/ksm/run" => host.memory.ksm_run.clone().map(|run| run.to_string()),
        "/sys/devices/system/clocksource/clocksource0/current_clocksource" => host.cpu.clocksource.clone(),
        _ if path.starts_with("/sys/block/") && path.ends_with("/queue/scheduler") => {
            let disk = host.disks.iter().find(|disk| disk.name == part(3));
            disk.map_or(Reading::Absent, |disk| disk.scheduler.clone())
        }
        _ if path.ends_with("/scaling_governor") => of_policy(|policy| policy.governor.clone()),
        _ if path.ends_with("/energy_performance_preference") => {
            of_policy(|policy| policy.energy_performance_preference.clone())
        }
        _ if path.ends_with("/scaling_min_freq") => {
            of_policy(|policy| policy.scaling_min_khz.clone().map(|khz| khz.to_string()))
        }
        _ => Reading::Absent,
    }
}
