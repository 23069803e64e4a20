//! Prepares an apply before the user is asked. Nothing is written here.

use super::{
    FlowError, Site, check,
    error::{differing_marks, list},
    log_check, persist,
    stage::{ApplyStage, plan_of},
};
use crate::{
    InForce,
    boot_loader::{self, BootLoader},
    units::{self, Unit, Watch},
};
use lowlat_host::HostSnapshot;
use lowlat_host_run::snapshot::machine_id_digest;
use lowlat_plan::{HostMark, Plan};
use lowlat_settings::change::{Part, Target};
use lowlat_undo::UndoLog;
use std::time::Duration;

/// Maximum number of lines of an error.
const LINES_MAX: usize = 20;
/// Minimum time of the dead-man switch: enough for a boot and for a person to answer.
const CONFIRM_MIN: Duration = Duration::from_secs(30);
/// Maximum time of the dead-man switch.
const CONFIRM_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Options of applying a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Units keep the plan in force over reboots.
    pub persist: bool,
    /// Checks for drift; none if drift is not watched.
    pub watch: Option<Watch>,
    /// Time after each boot within which it must be confirmed.
    pub confirm_within: Option<Duration>,
    /// Only changes that take effect at once are applied: no file, service enablement, command line or unit.
    pub only_run_time: bool,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self { persist: true, watch: None, confirm_within: None, only_run_time: false }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFrom {
    /// Made just now from the present host.
    Host,
    /// Saved earlier, perhaps on another host.
    File,
}

/// A plan that can be applied here.
#[derive(Debug)]
pub struct Ready {
    /// The plan that will be in force: the requested one on top of the one in force.
    pub plan: Plan,
    /// This completes an interrupted apply.
    pub is_resumed: bool,
    /// Changes that cannot be made here, with the reason.
    pub left: Vec<(usize, String)>,
    /// Other notes for the user.
    pub notes: Vec<String>,
    /// Text to install as [`crate::ROLE_FILE`] with the plan.
    pub role_file: Option<String>,
    pub(super) options: ApplyOptions,
    /// The plan in force when this was prepared.
    pub(super) seen: Option<InForce>,
    /// The plan to restore if this fails.
    pub(super) earlier: Option<InForce>,
    /// The same plan if it is already in force, complete or interrupted.
    pub(super) now: Option<InForce>,
    pub(super) confirm_within_s: Option<u64>,
    pub(super) loader: Option<Box<dyn BootLoader>>,
    pub(super) confirm_units: Vec<Unit>,
    pub(super) units: Vec<Unit>,
}

impl Ready {
    /// Checks a plan against `host`, which was just read.
    pub fn new(
        site: &Site,
        host: &HostSnapshot,
        wanted: Plan,
        from: PlanFrom,
        options: ApplyOptions,
    ) -> Result<Self, FlowError> {
        let in_force = site.state.in_force()?;
        if from == PlanFrom::File {
            fits(&wanted, host)?;
            // The plan in force was checked when it was applied, and may have changed the host since.
            let is_in_force = in_force.as_ref().is_some_and(|(now, _)| now.plan_id == wanted.id());
            let foreign = if is_in_force { Vec::new() } else { wanted.foreign_changes(host, site.catalogue) };
            if !foreign.is_empty() {
                let why = "lowlat would not plan this here";
                return Err(FlowError::unfit_plan(why, &cut(foreign)));
            }
        }
        let wanted = if options.only_run_time { run_time_only(wanted) } else { wanted };
        unfinished(site, in_force.as_ref())?;
        let seen = in_force.as_ref().map(|(now, _)| now.clone());
        let (plan, earlier, now) = match in_force {
            None => (wanted, None, None),
            Some((now, plan)) if !now.is_complete => {
                if from == PlanFrom::File && wanted.id() != now.plan_id {
                    return Err(unfinished_plan(site, &now.plan_id));
                }
                (plan, now.earlier.clone().map(|earlier| *earlier), Some(now))
            }
            Some((now, plan)) => {
                let merged = plan.with_above(&wanted);
                let same = (merged.id() == now.plan_id).then(|| now.clone());
                (merged, Some(now), same)
            }
        };
        let inherited =
            confirm_within(earlier.as_ref(), now.as_ref()).filter(|_| options.confirm_within.is_none());
        let options = ApplyOptions { confirm_within: options.confirm_within.or(inherited), ..options };
        let obstacles = check::obstacles(site, &plan);
        if !obstacles.is_empty() {
            return Err(FlowError::obstacles(&obstacles));
        }
        let targets = (site.targets)();
        let mut ready = Self {
            left: check::left(site, |kind| targets.iter().any(|target| target.kind() == kind), &plan, host),
            plan,
            is_resumed: now.as_ref().is_some_and(|now| !now.is_complete),
            notes: inherited.iter().map(|within| still_waits(*within)).collect(),
            role_file: None,
            options,
            seen,
            earlier,
            now,
            confirm_within_s: None,
            loader: None,
            confirm_units: Vec::new(),
            units: Vec::new(),
        };
        ready.find_boot_loader(site);
        ready.choose_units(site)?;
        Ok(ready)
    }

    /// True if the plan is already in force.
    pub fn is_in_force(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.is_complete)
    }

    fn find_boot_loader(&mut self, site: &Site) {
        let place = self.plan.changes.iter().position(|c| matches!(c.target, Target::CommandLine { .. }));
        let Some(tokens) = self.plan.boot_tokens() else { return };
        // Only a check: the files are read again when they are written, after the user's answer.
        let found =
            (site.detect)(&site.root).and_then(|loader| loader.sources(&site.root, tokens).map(|_| loader));
        match found {
            Ok(loader) => {
                self.notes.extend(loader.notes(&site.root, tokens));
                self.notes.extend(boot_loader::built_in_note(&site.root, tokens));
                self.loader = Some(loader);
            }
            Err(error) => self.left.extend(place.map(|at| (at, error.to_string()))),
        }
    }

    fn choose_units(&mut self, site: &Site) -> Result<(), FlowError> {
        if self.options.only_run_time && self.options.confirm_within.is_none() {
            return Ok(());
        }
        if site.is_live() && site.manager.is_none() {
            self.notes.push(check::NO_SYSTEMD.to_owned());
            return match self.options.confirm_within {
                Some(_) => Err(FlowError::obstacle("--confirm-within needs systemd, which is not running")),
                None => Ok(()),
            };
        }
        let lowlat = match persist::lowlat(site) {
            Ok(lowlat) => lowlat,
            Err(why) if site.is_live() && (self.options.persist || self.options.confirm_within.is_some()) => {
                return Err(FlowError::obstacle(why));
            }
            Err(why) => {
                self.notes.push(format!("no unit keeps the plan in force: {why}"));
                return Ok(());
            }
        };
        if let Some(within) = self.options.confirm_within {
            if !(CONFIRM_MIN..=CONFIRM_MAX).contains(&within) {
                return Err(FlowError::obstacle(
                    "--confirm-within must be between 30s and 168h, enough for a boot and for a person to answer",
                ));
            }
            self.confirm_within_s = Some(within.as_secs());
            self.confirm_units = units::confirm(&lowlat, within);
        }
        if self.options.persist && !self.options.only_run_time {
            let has_tuned = ["/usr/lib", "/lib", "/etc"]
                .iter()
                .any(|folder| site.root.exists(&format!("{folder}/systemd/system/tuned.service")));
            self.units = units::of(&lowlat, has_tuned, self.options.watch);
        }
        Ok(())
    }

    /// The changes of a stage as a plan, and the index of each in the whole plan.
    pub(super) fn possible(&self, stage: ApplyStage) -> (Plan, Vec<usize>) {
        let is_left = |at: &usize| self.left.iter().any(|(left, _)| left == at);
        let is_here = |at: &usize| {
            let target = self.plan.changes.get(*at).map(|change| &change.target);
            target.is_some_and(comes_first) == (stage == ApplyStage::Tuned)
        };
        let places: Vec<usize> =
            (0..self.plan.changes.len()).filter(|at| !is_left(at) && is_here(at)).collect();
        let changes = places.iter().filter_map(|at| self.plan.changes.get(*at).cloned()).collect();
        (Plan { changes, ..self.plan.clone() }, places)
    }
}

/// True for targets that run-time values depend on: TuneD's profile, its files, or a unit file, because a run-time
/// change may start that unit.
fn comes_first(target: &Target) -> bool {
    match target {
        Target::TunedProfile => true,
        Target::OwnedFile { path } => {
            path.starts_with("/etc/tuned/")
                || path.starts_with(&format!("{}/", units::DIRECTORY)) && !path.contains(".d/")
        }
        _ => false,
    }
}

/// Rejects a plan that was made for another host, or before this one changed.
fn fits(plan: &Plan, host: &HostSnapshot) -> Result<(), FlowError> {
    let marks = differing_marks(&plan.host, &HostMark::of(host));
    if !marks.is_empty() {
        return Err(FlowError::Refused(format!(
            "cannot apply this plan: it was made for another host, or this host's hardware or kernel has changed:\n{}\nhint: \
             make a new plan here with `lowlat tune plan --out FILE`",
            list(&marks)
        )));
    }
    let drift = plan.drift(host);
    if drift.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = drift
        .iter()
        .map(|drift| {
            let change = plan.changes.get(drift.change);
            let name = change.map_or_else(String::new, |change| change.settings.join(", "));
            let wanted = match change.map(|change| (&change.target, &change.after)) {
                Some((Target::CommandLine { .. }, _)) | None => String::new(),
                Some((_, after)) => format!(", wanted {after}"),
            };
            format!("{name}: {} in the plan, {} now{wanted}", drift.before, drift.now)
        })
        .collect();
    Err(FlowError::unfit_plan("the host has changed since it was made", &cut(lines)))
}

/// The first lines, and the number of the others.
fn cut(mut lines: Vec<String>) -> Vec<String> {
    if let Some(more) = lines.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Rejects if another plan in the log is incomplete.
fn unfinished(site: &Site, in_force: Option<&(InForce, Plan)>) -> Result<(), FlowError> {
    let inspection = site.state.open_undo_log().map(|dir| UndoLog::inspect(dir.as_ref()));
    let Ok(Ok(inspection)) = inspection else { return Ok(()) };
    let history = &inspection.history;
    let other = history.plans.iter().find(|plan| {
        plan.is_open
            && history.entries.iter().any(|entry| entry.plan == plan.id)
            && in_force.is_none_or(|(now, _)| now.plan_id != plan_of(&plan.id))
            && !plan_of(&plan.id).is_empty()
            && !super::stage::is_again(&plan.id)
    });
    match other {
        Some(plan) => Err(unfinished_plan(site, plan_of(&plan.id))),
        None => Ok(()),
    }
}

fn unfinished_plan(site: &Site, plan: &str) -> FlowError {
    let path = site.state.plan_path(plan);
    FlowError::Refused(format!(
        "cannot continue, and nothing was changed: plan {plan} was applied only in part\nhint: complete it with `lowlat tune \
         apply --plan {}`, or roll it back with `lowlat tune rollback`",
        path.display()
    ))
}

/// The confirmation time of a plan applied without one: that of an earlier plan that still waits, or its own
/// before it was interrupted. Otherwise the earlier plan's switch would find nothing to roll back, and
/// report nothing.
fn confirm_within(earlier: Option<&InForce>, now: Option<&InForce>) -> Option<Duration> {
    let waiting = match now {
        // Its own switch is unchanged, perhaps disarmed.
        Some(now) if now.is_complete => None,
        Some(now) => now.confirm_within_s,
        None => earlier?.confirm_within_s,
    };
    waiting.map(Duration::from_secs)
}

fn still_waits(within: Duration) -> String {
    format!(
        "The plan in force is not confirmed yet, so this one needs confirmation too: both are rolled back unless \
         you run `lowlat tune confirm` within {} s.",
        within.as_secs()
    )
}

/// Removes the changes that affect later boots.
fn run_time_only(mut plan: Plan) -> Plan {
    plan.changes.retain(|change| {
        !matches!(change.target.kind().facts().part, Part::Boot | Part::Files | Part::Tuned)
    });
    for change in &mut plan.changes {
        // "inactive, disabled": the second word is for later boots.
        if let (Target::Service { .. }, Some((run, _))) = (&change.target, change.after.split_once(',')) {
            change.after = run.to_owned();
        }
    }
    plan
}

/// The result of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// No plan is in force.
    NothingInForce,
    /// The plan in force was made for this host.
    Already,
    /// The plan counts as made for this host from now on.
    Now,
}

/// Marks the plan in force as made for this host. Its changes are not applied: that happens at boot.
pub fn adopt(site: &Site) -> Result<Adopted, FlowError> {
    if site.state.in_force()?.is_none() {
        return Ok(Adopted::NothingInForce);
    }
    // Read again under the log's lock: a rollback may have held it.
    let log = site.open_log()?;
    let Some((in_force, mut plan)) = site.state.in_force()? else { return Ok(Adopted::NothingInForce) };
    log_check::refuse(site, &log)?;
    let marks =
        HostMark { machine_id_digest: machine_id_digest(&site.root), ..HostMark::of(&site.snapshot()) };
    if !plan.host.is_other_machine(&marks) {
        return Ok(Adopted::Already);
    }
    plan.host = marks;
    site.state.put_in_force(&in_force, &plan)?;
    site.seal(&log)?;
    Ok(Adopted::Now)
}
