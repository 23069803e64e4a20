//! Idle states, which a reader merges over CPUs.

use super::judge::{Scene, UnjudgedTarget};
use super::{Row, Standing, culprit};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::change::Change;

/// One row for the CPUs on which the state is disabled as planned, one for the others.
pub(super) fn rows(scene: &Scene<'_>, at: usize, change: &Change, name: &str, cpus: &CpuSet) -> Vec<Row> {
    let look = |cpus: &CpuSet, observed: &str, is_planned: bool| {
        let (what, observed) =
            (format!("idle state {name} on {cpus:#}"), Reading::Known(observed.to_owned()));
        let claims = culprit::idle_states(scene.evidence);
        UnjudgedTarget { is_planned, claims, ..UnjudgedTarget::of(at, change, what, observed) }
    };
    let state = scene.host.cpu.idle_states.iter().find(|state| state.name == name);
    let Some(state) = state else {
        let row = look(cpus, "disabled", true);
        return vec![row.row(Standing::Held, "no CPU has this state any more, so none can enter it")];
    };
    let wants_off = change.after != "enabled";
    let enabled = cpus.intersection(&state.cpus_enabled);
    let (off, on) = ((cpus.difference(&enabled), "disabled"), (enabled, "enabled"));
    let (good, bad) = if wants_off { (off, on) } else { (on, off) };
    let parts = [(good, true), (bad, false)].into_iter().filter(|((cpus, _), _)| !cpus.is_empty());
    parts.map(|((cpus, word), is_planned)| look(&cpus, word, is_planned).judge(scene)).collect()
}
