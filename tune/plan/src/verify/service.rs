//! State of systemd units: running, and started at boot.

use super::judge::{Claim, Scene, UnjudgedTarget};
use super::{Culprit, CulpritKind, Row, Standing};
use lowlat_host::{Reading, snapshot::Service};
use lowlat_settings::{
    Layer,
    change::{Change, Moment},
};

pub(super) fn row(scene: &Scene<'_>, at: usize, change: &Change, unit: &str) -> Row {
    let services = &scene.host.services;
    let look = |observed: Reading<String>, is_planned: bool| UnjudgedTarget {
        is_planned,
        claims: claims(scene, unit),
        ..UnjudgedTarget::of(at, change, unit.to_owned(), observed)
    };
    let Some(found) = services.units.get(unit) else {
        if services.units.is_empty() {
            return look(Reading::Absent, false)
                .row(Standing::Unreadable, "systemd was not read, so its state is unknown");
        }
        return look(Reading::Absent, false).row(Standing::Gone, "the unit no longer exists");
    };
    let (planned_active, planned_boot) = parts(&change.after);
    let is_active = found.active.clone().map(|state| is_running(&state));
    let Reading::Known(is_active) = is_active else {
        let why = found.active.missing_in_words().unwrap_or_default();
        return look(found.active.clone(), false)
            .row(Standing::Unreadable, format!("its run state is {why}; only systemd can report it"));
    };
    let observed = Reading::Known(state(found));
    let runs_as_planned = is_active == is_running(planned_active);
    let starts_as_planned =
        planned_boot.is_none_or(|boot| !found.enablement.is_known() || found.enablement.text() == boot);
    match (runs_as_planned, starts_as_planned) {
        (true, false) => look(observed, false).row(
            Standing::Lost,
            format!(
                "its run state is as planned, but `systemctl` or a package has made it {} again, which the next \
                 boot follows",
                found.enablement
            ),
        ),
        (is_planned, _) => look(observed, is_planned).judge(scene),
    }
}

/// TuneD's active profile and its mode.
pub(super) fn tuned_row(scene: &Scene<'_>, at: usize, change: &Change) -> Row {
    let tuned = &scene.host.services.tuned;
    let observed = tuned.profile.clone().map(|profile| match (profile.as_str(), tuned.mode.text().trim()) {
        ("", _) => "no profile".to_owned(),
        (profile, "") => profile.to_owned(),
        (profile, mode) => format!("{profile} {mode}"),
    });
    // Releases of TuneD without modes do not record one.
    let planned = match tuned.mode.text().trim() {
        "" => change.after.split_once(' ').map_or(change.after.as_str(), |(profile, _)| profile),
        _ => &change.after,
    };
    let is_planned = observed.known().is_some_and(|observed| observed == planned);
    let claim = |name: &str, does: String| Claim {
        by: Culprit { kind: CulpritKind::Tuned, name: name.to_owned(), line: Some(1), does },
        value: None,
    };
    let claims = match (tuned.profile.text(), tuned.mode.text().trim()) {
        (_, "auto") => {
            let does = "contains auto, so TuneD chooses its profile automatically".to_owned();
            vec![claim("/etc/tuned/profile_mode", does)]
        }
        (profile, "manual") if !profile.is_empty() => {
            let does = format!("contains {profile}, chosen with `tuned-adm profile`");
            vec![claim("/etc/tuned/active_profile", does)]
        }
        _ => Vec::new(),
    };
    UnjudgedTarget { at, change, what: "TuneD's profile".to_owned(), observed, is_planned, claims }
        .judge(scene)
}

/// The row of the service that applies the run-time part at the next boot; none if the plan does not need it or it was
/// never installed.
pub(super) fn keeper_row(scene: &Scene<'_>) -> Option<Row> {
    const SERVICE: &str = "lowlat.service";
    let is_needed = scene.plan.changes.iter().any(|change| change.moment == Moment::NowAndAtBoot);
    let enablement = &scene.host.services.units.get(SERVICE).filter(|_| is_needed)?.enablement;
    let state = enablement.known()?;
    let is_enabled = state.starts_with("enabled");
    let note =
        "the next boot will not apply the run-time part of the plan; `lowlat tune apply` enables it again";
    let what = format!("{SERVICE} at boot");
    let row = Row::of_host(Layer::Service.word(), what, "enabled".to_owned(), enablement.clone(), None);
    Some(if is_enabled { row } else { Row { standing: Standing::Lost, note: note.to_owned(), ..row } })
}

/// "active, enabled" in its two parts.
fn parts(text: &str) -> (&str, Option<&str>) {
    let parts = text.split_once(',');
    parts.map_or((text.trim(), None), |(active, boot)| (active.trim(), Some(boot.trim())))
}

fn is_running(state: &str) -> bool {
    matches!(state, "active" | "activating" | "reloading")
}

fn state(unit: &Service) -> String {
    match unit.enablement.text() {
        "" => unit.active.text().to_owned(),
        boot => format!("{}, {boot}", unit.active.text()),
    }
}

/// Claims of units that can restart a stopped unit.
fn claims(scene: &Scene<'_>, unit: &str) -> Vec<Claim> {
    let Some((stem, "service")) = unit.rsplit_once('.') else { return Vec::new() };
    let runs = |name: &String| {
        scene.host.services.units.get(name).is_some_and(|unit| is_running(unit.active.text()))
    };
    let starters = ["socket", "timer", "path"].map(|kind| format!("{stem}.{kind}"));
    let claim = |name: String| {
        let does = format!("is active and starts {unit} again");
        Claim { by: Culprit { kind: CulpritKind::Daemon, name, line: None, does }, value: None }
    };
    starters.into_iter().filter(runs).map(claim).collect()
}
