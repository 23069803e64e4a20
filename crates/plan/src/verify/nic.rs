//! Network interfaces: what ethtool's calls answer, and the masks of packet steering.

use super::judge::{Look, Scene};
use super::{Row, Standing, culprit};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Nic, QueueMask},
};
use lowlat_settings::{
    change::{Change, Target},
    same_meaning,
};

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, name: &str) -> Row {
    let (field, is_mask) = match &change.target {
        Target::NicChannels { field, .. } => (format!("{field} queues"), false),
        Target::NicCoalescing { field, .. } => (field.clone(), false),
        Target::NicFeature { feature, .. } => (feature.clone(), false),
        Target::NicRps { queue, .. } => (format!("{queue} rps_cpus"), true),
        Target::NicXps { queue, .. } => (format!("{queue} xps_cpus"), true),
        _ => (String::new(), false),
    };
    let what = format!("{name} {field}");
    let Some(nic) = scene.host.nics.iter().find(|nic| nic.name == name) else {
        let look =
            Look { at, change, what, observed: Reading::Absent, is_planned: false, claims: Vec::new() };
        let note =
            format!("absent: there is no interface {name} now; was it renamed, or its driver not loaded?");
        return look.row(Standing::Unreadable, note);
    };
    let observed = in_force(nic, &change.target);
    let is_planned = observed.known().is_some_and(|value| {
        if is_mask {
            let sets = (CpuSet::parse_list(value), CpuSet::parse_list(&change.after));
            matches!(sets, (Ok(a), Ok(b)) if scene.same_cpus(&a, &b))
        } else {
            same_meaning(value, &change.after)
        }
    });
    let claims = culprit::of_nic(scene.evidence, name, &change.target);
    let look = Look { at, change, what, observed, is_planned, claims };
    if is_mask && look.observed.is_absent() {
        return look.row(Standing::Gone, "the interface has no such queue now");
    }
    look.judge(scene)
}

fn in_force(nic: &Nic, target: &Target) -> Reading<String> {
    let on_off = |is_on: bool| if is_on { "on".to_owned() } else { "off".to_owned() };
    let mask = |queues: &[QueueMask], name: &str| {
        let found = queues.iter().find(|mask| mask.queue == name);
        found.map_or(Reading::Absent, |mask| mask.cpus.clone().map(|cpus| cpus.to_list()))
    };
    match target {
        Target::NicChannels { field, .. } => {
            nic.channels.as_ref().and_then(|channels| match field.as_str() {
                "combined" => Reading::Known(channels.combined.to_string()),
                "rx" => Reading::Known(channels.rx.to_string()),
                "tx" => Reading::Known(channels.tx.to_string()),
                _ => Reading::Absent,
            })
        }
        Target::NicCoalescing { field, .. } => nic.coalescing.as_ref().and_then(|now| {
            Reading::from_option(match field.as_str() {
                "rx-usecs" => now.rx_usecs.map(|usecs| usecs.to_string()),
                "rx-frames" => now.rx_frames.map(|frames| frames.to_string()),
                "tx-usecs" => now.tx_usecs.map(|usecs| usecs.to_string()),
                "tx-frames" => now.tx_frames.map(|frames| frames.to_string()),
                "adaptive-rx" => now.adaptive_rx.map(on_off),
                "adaptive-tx" => now.adaptive_tx.map(on_off),
                _ => None,
            })
        }),
        Target::NicFeature { feature, .. } => {
            nic.offloads.as_ref().and_then(|all| Reading::from_option(all.get(feature).copied().map(on_off)))
        }
        Target::NicRps { queue, .. } => mask(&nic.rps, queue),
        Target::NicXps { queue, .. } => mask(&nic.xps, queue),
        _ => Reading::Absent,
    }
}
