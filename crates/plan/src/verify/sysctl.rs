//! Sysctls: the value of /proc/sys, and whether another one counts in its place.

use super::culprit;
use super::judge::{Look, Scene};
use super::{Row, Standing};
use lowlat_host::snapshot::sysctl_path;
use lowlat_settings::{change::Change, same_meaning};

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, key: &str) -> Row {
    let observed = scene.file(&sysctl_path(key));
    let is_planned = observed.known().is_some_and(|value| same_meaning(value, &change.after));
    let why = if is_planned { larger_of_all(scene, key, &change.after) } else { None };
    let claims = culprit::of_sysctl(scene.evidence, &scene.host.kernel.sysctl_files, key);
    let look = Look { at, change, what: key.to_owned(), observed, is_planned, claims };
    match why {
        Some(why) => look.row(Standing::Ineffective, why),
        None => look.judge(scene),
    }
}

/// Reverse path filtering takes the larger of an interface's own value and the one for all
/// (Documentation/networking/ip-sysctl.rst).
fn larger_of_all(scene: &Scene<'_>, key: &str, planned: &str) -> Option<String> {
    let name = key.strip_prefix("net.ipv4.conf.")?.strip_suffix(".rp_filter")?;
    if matches!(name, "all" | "default") {
        return None;
    }
    let all = scene.file("/proc/sys/net/ipv4/conf/all/rp_filter");
    let (all, planned): (u32, u32) = (all.text().parse().ok()?, planned.trim().parse().ok()?);
    (all > planned).then(|| {
        format!("net.ipv4.conf.all.rp_filter is {all}, and the larger of the two counts: {name} is filtered by {all}")
    })
}
