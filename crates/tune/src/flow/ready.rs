//! What applying would do on this host, before the user is asked. Nothing is written here.

use super::error::differing_marks;
use super::stage::{Stage, plan_of};
use super::{FlowError, Site, check, persist};
use crate::InForce;
use crate::boot_loader::BootLoader;
use crate::units::{self, Unit, Watch};
use lowlat_host::HostSnapshot;
use lowlat_plan::{HostMark, Plan};
use lowlat_settings::change::{BootToken, Part, Target};
use lowlat_sys::undo::UndoLog;
use std::time::Duration;

/// Lines of an error that are shown at most.
const LINES_MAX: usize = 20;
/// The dead-man switch needs time for a boot and for a person.
const CONFIRM_MIN: Duration = Duration::from_secs(30);
/// Longer than this is no dead-man switch.
const CONFIRM_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// How a plan is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplyOptions {
    /// Whether units keep it in force over reboots.
    pub persist: bool,
    /// Whether drift is looked for.
    pub watch: Option<Watch>,
    /// Within how long of each boot it must be confirmed.
    pub confirm_within: Option<Duration>,
    /// Whether only what takes effect at once is applied: no file, no service's enablement, no command line, no unit.
    pub only_run_time: bool,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self { persist: true, watch: None, confirm_within: None, only_run_time: false }
    }
}

/// Where a plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFrom {
    /// Made just now, of the host as it is.
    Host,
    /// Saved earlier, and perhaps elsewhere.
    File,
}

/// A plan that can be applied here.
#[derive(Debug)]
pub struct Ready {
    /// What will be in force: the plan asked for on top of the one in force.
    pub plan: Plan,
    /// Whether an interrupted apply is finished.
    pub is_resumed: bool,
    /// Changes that cannot be made here, with the reason.
    pub left: Vec<(usize, String)>,
    /// Other things that the user should know before.
    pub notes: Vec<String>,
    pub(super) options: ApplyOptions,
    /// What was in force when this was looked at.
    pub(super) seen: Option<InForce>,
    /// What is in force again when this fails.
    pub(super) earlier: Option<InForce>,
    /// The same plan as it is in force now, complete or interrupted.
    pub(super) now: Option<InForce>,
    pub(super) confirm_within_s: Option<u64>,
    pub(super) loader: Option<Box<dyn BootLoader>>,
    pub(super) confirm_units: Vec<Unit>,
    pub(super) units: Vec<Unit>,
}

impl Ready {
    /// Holds a plan against the host as it was just read. `host` is that reading.
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
            // What is in force already was checked when it came, and a part of it may have changed the host since.
            let is_in_force = in_force.as_ref().is_some_and(|(now, _)| now.plan_id == wanted.id());
            let foreign = if is_in_force { Vec::new() } else { wanted.foreign_changes(host, site.catalogue) };
            if !foreign.is_empty() {
                return Err(FlowError::Foreign(cut(foreign)));
            }
        }
        let wanted = if options.only_run_time { run_time_only(wanted) } else { wanted };
        unfinished(site, in_force.as_ref())?;
        let seen = in_force.as_ref().map(|(now, _)| now.clone());
        let (plan, earlier, now) = match in_force {
            None => (wanted, None, None),
            Some((now, plan)) if !now.is_complete => {
                if from == PlanFrom::File && wanted.id() != now.plan_id {
                    return Err(unfinished_plan(site, now.plan_id));
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
            return Err(FlowError::Refused(obstacles));
        }
        let mut ready = Self {
            left: check::left(site, |kind| knows(site, kind), &plan, host),
            plan,
            is_resumed: now.as_ref().is_some_and(|now| !now.is_complete),
            notes: inherited.iter().map(|within| still_waits(*within)).collect(),
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

    /// Whether the plan is in force already, so that applying only looks after it.
    pub fn is_in_force(&self) -> bool {
        self.now.as_ref().is_some_and(|now| now.is_complete)
    }

    fn find_boot_loader(&mut self, site: &Site) {
        let place = self.plan.changes.iter().position(|c| matches!(c.target, Target::CommandLine { .. }));
        let Some(tokens) = self.tokens() else { return };
        // Only whether it can be done: the files are read again when they are written, after the user's answer.
        let found =
            (site.detect)(&site.root).and_then(|loader| loader.sources(&site.root, tokens).map(|_| loader));
        match found {
            Ok(loader) => {
                let notes = loader.notes(&site.root, tokens);
                self.notes.extend(notes);
                self.loader = Some(loader);
            }
            Err(error) => self.left.extend(place.map(|at| (at, error.to_string()))),
        }
    }

    /// The parameters of the plan's command line; none when it has no such change.
    pub(super) fn tokens(&self) -> Option<&[BootToken]> {
        self.plan.changes.iter().find_map(|change| match &change.target {
            Target::CommandLine { tokens } => Some(tokens.as_slice()),
            _ => None,
        })
    }

    fn choose_units(&mut self, site: &Site) -> Result<(), FlowError> {
        let refused = |lines: &str| FlowError::Refused(vec![lines.to_owned()]);
        if self.options.only_run_time && self.options.confirm_within.is_none() {
            return Ok(());
        }
        if site.is_live() && site.manager.is_none() {
            self.notes.push(
                "systemd does not run here, so no unit applies the run-time part at the next boot".to_owned(),
            );
            return match self.options.confirm_within {
                Some(_) => Err(refused("--confirm-within takes systemd, which does not run here")),
                None => Ok(()),
            };
        }
        let lowlat = match persist::lowlat(site) {
            Ok(lowlat) => lowlat,
            Err(why) if site.is_live() && (self.options.persist || self.options.confirm_within.is_some()) => {
                return Err(refused(&why));
            }
            Err(why) => {
                self.notes.push(format!("no unit keeps the plan in force: {why}"));
                return Ok(());
            }
        };
        if let Some(within) = self.options.confirm_within {
            if !(CONFIRM_MIN..=CONFIRM_MAX).contains(&within) {
                return Err(refused(
                    "--confirm-within takes between 30s and 168h: time for a boot and for a person",
                ));
            }
            self.confirm_within_s = Some(within.as_secs());
            self.confirm_units = units::confirm(&lowlat, within);
        }
        if self.options.persist && !self.options.only_run_time {
            let has_tuned = ["/usr/lib", "/lib", "/etc"]
                .iter()
                .any(|folder| site.root.exists(&format!("{folder}/systemd/system/tuned.service")));
            self.units = units::of(units::Wanted { lowlat: &lowlat, has_tuned, watch: self.options.watch });
        }
        Ok(())
    }

    /// The changes that a part's steps are made of, as a plan, and where each of them stands in the whole.
    pub(super) fn possible(&self, stage: Stage) -> (Plan, Vec<usize>) {
        let is_left = |at: &usize| self.left.iter().any(|(left, _)| left == at);
        let is_here = |at: &usize| {
            let target = self.plan.changes.get(*at).map(|change| &change.target);
            target.is_some_and(is_of_tuned) == (stage == Stage::Tuned)
        };
        let places: Vec<usize> =
            (0..self.plan.changes.len()).filter(|at| !is_left(at) && is_here(at)).collect();
        let changes = places.iter().filter_map(|at| self.plan.changes.get(*at).cloned()).collect();
        (Plan { changes, ..self.plan.clone() }, places)
    }
}

/// Whether a change is of TuneD's profile: the switch, or a profile's file.
fn is_of_tuned(target: &Target) -> bool {
    match target {
        Target::TunedProfile => true,
        Target::OwnedFile { path } => path.starts_with("/etc/tuned/"),
        _ => false,
    }
}

fn knows(site: &Site, kind: &str) -> bool {
    (site.targets)().iter().any(|target| target.kind() == kind)
}

/// Refuses a plan that was made for another host, or before somebody changed this one.
fn fits(plan: &Plan, host: &HostSnapshot) -> Result<(), FlowError> {
    let marks = differing_marks(&plan.host, &HostMark::of(host));
    if !marks.is_empty() {
        return Err(FlowError::OtherHost(marks));
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
            format!("{name}: {} when it was made, {} now{wanted}", drift.before, drift.now)
        })
        .collect();
    Err(FlowError::Drift(cut(lines)))
}

/// The first lines, and how many more there are.
fn cut(mut lines: Vec<String>) -> Vec<String> {
    if let Some(more) = lines.len().checked_sub(LINES_MAX).filter(|more| *more > 0) {
        lines.truncate(LINES_MAX);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Refuses while the log has steps of another plan under way.
fn unfinished(site: &Site, in_force: Option<&(InForce, Plan)>) -> Result<(), FlowError> {
    let inspection = site.state.open_undo_log().map(|dir| UndoLog::inspect_in(dir.as_ref()));
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
        Some(plan) => Err(unfinished_plan(site, plan_of(&plan.id).to_owned())),
        None => Ok(()),
    }
}

fn unfinished_plan(site: &Site, plan: String) -> FlowError {
    let path = site.state.plan_path(&plan).display().to_string();
    FlowError::Unfinished { plan, path }
}

/// Within how long a plan must be confirmed for which nothing is said of that: as one below it that still waits, or as it
/// was before it was interrupted. Else the switch of that one would find nothing to take back, and nobody would be told.
fn confirm_within(earlier: Option<&InForce>, now: Option<&InForce>) -> Option<Duration> {
    let waiting = match now {
        // Its own switch is as it was, at rest perhaps.
        Some(now) if now.is_complete => None,
        Some(now) => now.confirm_within_s,
        None => earlier?.confirm_within_s,
    };
    waiting.map(Duration::from_secs)
}

fn still_waits(within: Duration) -> String {
    format!(
        "The plan in force waits for its confirmation, and so does this one: it is taken back with it unless `lowlat tune \
         confirm` comes within {} s.",
        within.as_secs()
    )
}

/// Takes off what later boots would be changed by.
fn run_time_only(mut plan: Plan) -> Plan {
    plan.changes
        .retain(|change| !matches!(change.target.kind().part(), Part::Boot | Part::Files | Part::Tuned));
    for change in &mut plan.changes {
        // "inactive, disabled": the second word is for later boots.
        if let (Target::Service { .. }, Some((run, _))) = (&change.target, change.after.split_once(',')) {
            change.after = run.to_owned();
        }
    }
    plan
}

/// The parts in the order in which they are carried out.
pub(super) const ORDER: [Stage; 8] = [
    Stage::Confirm,
    Stage::Tuned,
    Stage::Queues,
    Stage::Run,
    Stage::Files,
    Stage::Boot,
    Stage::Loader,
    Stage::Persist,
];
