//! Many hosts at a glance: which differ from the others, and in what.

pub mod html;
pub mod text;

use lowlat_result::fleet::{Fleet, FleetHost};
use lowlat_text::units::{clean, count, plural};

/// Returns the verdict on a fleet in one sentence.
fn headline(fleet: &Fleet) -> String {
    let (all, alike) = (fleet.hosts.len(), fleet.alike_count());
    let groups = fleet.groups.iter().filter(|group| !group.differs.is_empty()).count();
    if groups == 0 {
        return format!("{}, and no verdict differs between them.", plural(all, "host"));
    }
    let verb = if all - alike == 1 { "differs" } else { "differ" };
    format!(
        "{}: {} are alike, {} in {} {verb} from them.",
        plural(all, "host"),
        count(alike as u64),
        count((all - alike) as u64),
        plural(groups, "group")
    )
}

/// Names of hosts, the first ones only.
fn names(fleet: &Fleet, places: &[usize], names_max: usize) -> String {
    let known: Vec<String> = places
        .iter()
        .filter_map(|at| fleet.hosts.get(*at))
        .take(names_max)
        .map(|host| clean(&host.name))
        .collect();
    let text = known.join(", ");
    match places.len().saturating_sub(names_max) {
        0 => text,
        more => format!("{text} and {} more", count(more as u64)),
    }
}

/// How many times as many interruptions a host has as the middle one.
fn times(fleet: &Fleet, host: &FleetHost) -> Option<f64> {
    let median = fleet.interruptions_per_s_median.filter(|median| *median > 0.0)?;
    host.interruptions_per_s.map(|rate| rate / median)
}
