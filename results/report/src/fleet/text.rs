//! A fleet as terminal text.

use super::{headline, names, oldest, other_threshold, times};
use lowlat_results::fleet::{Fleet, FleetFinding, FleetWanted};
use lowlat_text::columns::Table;
use lowlat_text::text::{BOLD, add_field, add_heading, add_painted, cut, usable, wrap};
use lowlat_text::units::{clean, count, plural, rate};

/// Highest number of groups, of settings of a group, of settings and of noisy hosts shown.
const GROUPS_MAX: usize = 10;
const DIFFERS_MAX: usize = 6;
const FINDINGS_MAX: usize = 20;
const NOISY_MAX: usize = 10;
const NAMES_MAX: usize = 6;
const WANTED_MAX: usize = 6;
/// Longest id shown, in characters.
const ID_MAX: usize = 50;

/// Formats a fleet for a terminal of this width.
pub fn fleet_text(fleet: &Fleet, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_painted(&mut out, BOLD, &headline(fleet), 0, width);
    for line in oldest(fleet).iter().flat_map(|text| wrap(text, width)) {
        out.push_str(&format!("{line}\n"));
    }
    add_groups(&mut out, fleet, width);
    add_findings(&mut out, fleet, width);
    add_noisy(&mut out, fleet, width);
    out
}

fn add_groups(out: &mut String, fleet: &Fleet, width: usize) {
    let groups: Vec<_> = fleet.groups.iter().filter(|group| !group.differs.is_empty()).collect();
    if groups.is_empty() {
        return;
    }
    add_heading(out, "Hosts that differ from most others");
    for group in groups.iter().take(GROUPS_MAX) {
        let differs = plural(group.differs.len(), "setting");
        let text = format!("{differs}: {}", names(fleet, &group.hosts, NAMES_MAX));
        add_field(out, &plural(group.hosts.len(), "host"), &text, 12, width);
        for (id, verdict) in group.differs.iter().take(DIFFERS_MAX) {
            add_field(out, "", &format!("{} {}", verdict.word(), clean(id)), 12, width);
        }
        if group.differs.len() > DIFFERS_MAX {
            add_field(out, "", &format!("and {} more", group.differs.len() - DIFFERS_MAX), 12, width);
        }
    }
    if groups.len() > GROUPS_MAX {
        out.push_str(&format!("  and {}\n", plural(groups.len() - GROUPS_MAX, "more group")));
    }
}

fn add_findings(out: &mut String, fleet: &Fleet, width: usize) {
    if fleet.findings.is_empty() {
        return;
    }
    add_heading(out, "Settings at fault, those on the fewest hosts first");
    let shown = fleet.findings.get(..FINDINGS_MAX).unwrap_or(&fleet.findings);
    let table = Table::of(shown)
        .figures("hosts", 0, |of| count(of.fault_count as u64))
        .figures("of", 1, |of| count(of.applies_count as u64))
        .words("setting", 0, |of| cut(&clean(&of.id), ID_MAX))
        .words("wanted", 2, |of| wanted(fleet, of).join("; "));
    out.push_str(&table.text(width));
    if fleet.findings.len() > shown.len() {
        out.push_str(&format!("  and {}\n", plural(fleet.findings.len() - shown.len(), "more setting")));
    }
}

/// Returns each wanted value, with its hosts if there are several values.
fn wanted(fleet: &Fleet, of: &FleetFinding) -> Vec<String> {
    let is_one = of.wanted.len() == 1;
    let value = |of: &FleetWanted| match (clean(&of.value), is_one) {
        (value, true) => value,
        (value, false) => format!("{value} ({})", names(fleet, &of.hosts, NAMES_MAX)),
    };
    let more = of.wanted.len().saturating_sub(WANTED_MAX);
    let more = (more > 0).then(|| format!("and {}", plural(more, "other value")));
    of.wanted.iter().take(WANTED_MAX).map(value).chain(more).collect()
}

fn add_noisy(out: &mut String, fleet: &Fleet, width: usize) {
    let Some(median) = fleet.rate_median else { return };
    add_heading(out, "Interruptions per second and CPU");
    add_field(out, "middle", &rate(median.per_s), 12, width);
    for host in fleet.noisy.iter().take(NOISY_MAX).filter_map(|at| fleet.hosts.get(*at)) {
        let far = times(fleet, host).map_or_else(String::new, |times| format!(", {} times", rate(times)));
        let text = format!("{}{far}  {}", rate(host.rate.map_or(0.0, |of| of.per_s)), clean(&host.name));
        add_field(out, "far above", &text, 12, width);
    }
    if fleet.noisy.len() > NOISY_MAX {
        out.push_str(&format!("  and {}\n", plural(fleet.noisy.len() - NOISY_MAX, "more host")));
    }
    if let Some(text) = other_threshold(fleet) {
        add_field(out, "left out", &text, 12, width);
    }
}
