//! Pools of huge pages, and idle states: values that a reader gathers over nodes and CPUs.

use super::judge::{Look, Scene};
use super::{Row, Standing, culprit};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::change::Change;

/// One row for the CPUs on which the state is off as planned, one for those on which it is not.
pub(super) fn idle_rows(
    scene: &Scene<'_>,
    at: usize,
    change: &Change,
    name: &str,
    cpus: &CpuSet,
) -> Vec<Row> {
    let look = |cpus: &CpuSet, observed: &str, is_planned: bool| Look {
        at,
        change,
        what: format!("idle state {name} on {cpus:#}"),
        observed: Reading::Known(observed.to_owned()),
        is_planned,
        claims: culprit::of_idle_states(scene.evidence),
    };
    let state = scene.host.cpu.idle_states.iter().find(|state| state.name == name);
    let Some(state) = state else {
        let row = look(cpus, "disabled", true);
        return vec![row.row(Standing::Held, "no CPU has this state now, so none can enter it")];
    };
    let wants_off = change.after != "enabled";
    let enabled = cpus.intersection(&state.cpus_enabled);
    let (good, bad) = if wants_off {
        (cpus.difference(&enabled), enabled)
    } else {
        let off = cpus.difference(&enabled);
        (enabled, off)
    };
    let words = if wants_off { ("disabled", "enabled") } else { ("enabled", "disabled") };
    let mut rows = Vec::new();
    if !good.is_empty() {
        rows.push(look(&good, words.0, true).judge(scene));
    }
    if !bad.is_empty() {
        rows.push(look(&bad, words.1, false).judge(scene));
    }
    rows
}

/// Pages of one pool. Fewer than asked for is what the kernel gives where memory is in pieces.
pub(super) fn huge_pages_row(
    scene: &Scene<'_>,
    at: usize,
    change: &Change,
    node: Option<u32>,
    size_bytes: u64,
) -> Row {
    let pools = &scene.host.memory.huge_pages;
    let pool = pools.iter().find(|pool| pool.node == node && pool.size_bytes == size_bytes);
    let total = pool.map_or(Reading::Absent, |pool| pool.total.clone());
    let planned: Option<u64> = change.after.trim().parse().ok();
    let is_planned = total.is_known() && total.known() == planned.as_ref();
    let is_short = matches!((total.known(), planned), (Some(total), Some(planned)) if *total < planned);
    let place = node.map_or_else(|| "host".to_owned(), |node| format!("node {node}"));
    let look = Look {
        at,
        change,
        what: format!("huge pages of {} KiB, {place}", size_bytes >> 10),
        observed: total.map(|total| total.to_string()),
        is_planned,
        claims: culprit::of_huge_pages(scene),
    };
    let row = look.judge(scene);
    let is_nobodys = row.by.as_ref().is_some_and(|by| by.kind == super::CulpritKind::Unknown);
    if is_short && is_nobodys {
        let why = "the kernel found no more memory in one piece; reserve them at boot with hugepages=, or right after";
        return Row { standing: Standing::Ineffective, by: None, note: why.to_owned(), ..row };
    }
    row
}
