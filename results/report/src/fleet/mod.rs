//! Many hosts at a glance: which differ from the others, and in what.

pub mod html;
pub mod text;

use lowlat_results::fleet::{Fleet, FleetHost};
use lowlat_text::units::{clean, count, plural, span};

/// Returns the verdict on a fleet in one sentence.
fn headline(fleet: &Fleet) -> String {
    let (all, alike) = (fleet.hosts.len(), fleet.alike_count());
    let groups = fleet.groups.iter().filter(|group| !group.differs.is_empty()).count();
    if all == 1 {
        return "1 host: nothing to compare it with.".to_owned();
    }
    if alike == 0 {
        return format!(
            "{} in {}: none has the most frequent verdict on every setting.",
            plural(all, "host"),
            plural(groups, "group")
        );
    }
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

/// Returns a host's rate of interruptions, divided by the median of the fleet.
fn times(fleet: &Fleet, host: &FleetHost) -> Option<f64> {
    let median = fleet.rate_median.map(|median| median.per_s).filter(|median| *median > 0.0)?;
    host.rate.map(|rate| rate.per_s / median)
}

/// Says which hosts are not compared; `None` if all measured ones are.
fn other_threshold(fleet: &Fleet) -> Option<String> {
    let threshold = fleet.threshold_ns.filter(|_| !fleet.other_threshold.is_empty())?;
    let hosts = names(fleet, &fleet.other_threshold, 8);
    Some(format!("Measured with another threshold than {}, so not compared: {hosts}.", span(threshold)))
}

/// Says how old the oldest document is: "Oldest document: desk7, 2026-11-20."
fn oldest(fleet: &Fleet) -> Option<String> {
    let host = fleet.oldest()?;
    let day = host.started_at.split('T').next().unwrap_or_default();
    Some(format!("Oldest document: {}, {}.", clean(&host.name), clean(day)))
}
