//! Idle states, which a reader merges over CPUs.

use super::judge::{Scene, UnjudgedTarget};
use super::{Row, Standing, culprit};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::change::Change;

/// One row for the CPUs on which the state is disabled as planned, one for the others.
pub(super) fn rows(scene: &Scene<'_>, at: usize, change: &Change, name: &str, cpus: &CpuSet) -> Vec<Row> {
    let look = |cpus: &CpuSet, observed: &str, is_planned: bool| UnjudgedTarget {
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
        return vec![row.row(Standing::Held, "no CPU has this state any more, so none can enter it")];
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
