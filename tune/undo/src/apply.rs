//! Applies the steps of a plan.

use super::{
    Comparison, Conflict, Entry, Event, HostError, LoggedState, Progress, State, TargetSpec, UndoError,
    UndoLog, rollback::Until,
};
use lowlat_host::snapshot::sysctl_zeroed_with;
use std::collections::BTreeMap;

/// One change of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// Its ID, unique within the plan.
    pub id: String,
    pub target: TargetSpec,
    /// State that the plan found.
    pub old: State,
    pub new: State,
}

/// Reaction to a failed step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Roll back what this call has done: all or nothing.
    #[default]
    RollBack,
    /// Continue with the other steps, and report the failures at the end.
    Continue,
    /// Roll back a step that the host rejected ([`HostError::is_refusal`]), continue, and report it at the
    /// end. Anything else (a full disk, a record that cannot be written, a step that cannot be rolled back)
    /// rolls back everything.
    SkipRefused,
}

/// Result of applying a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplyReport {
    /// Steps that this call has applied.
    pub done: Vec<String>,
    /// Steps that had nothing to change.
    pub unchanged: Vec<String>,
    /// Steps that failed, with the reason; never with [`OnFailure::RollBack`]. Those of
    /// [`OnFailure::SkipRefused`] are in their previous state.
    pub failed: Vec<(String, String)>,
}

/// The kind whose errors come from a disk and are never a rejection.
const FILE: &str = "file";
/// The kind of the kernel's attributes.
const VALUE: &str = "value";

/// Cause of one step's failure.
#[derive(Debug)]
struct Failure {
    error: UndoError,
    /// The target failed, not the log or something before the change.
    is_at_target: bool,
}

impl From<UndoError> for Failure {
    fn from(error: UndoError) -> Self {
        Self { error, is_at_target: false }
    }
}

fn at_target(error: HostError) -> Failure {
    Failure { error: error.into(), is_at_target: true }
}

/// State of a step, new or old, that the target has before the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    New,
    Old,
}

/// The state that a repeated step is later rolled back to, if its target was changed in the meantime. For
/// files see [`UndoLog::apply`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The current state, before this call.
    Latest,
    /// The state before the step was applied for the first time.
    First,
}

/// The state when all targets were checked.
#[derive(Debug)]
struct ObservedTarget {
    standing: Standing,
    state: State,
}

/// True if another program routinely changes the target: irqbalance moves interrupts every ten seconds. Such a target
/// may have any state when its step starts.
fn is_moved_by_rule(target: &TargetSpec) -> bool {
    target.name.starts_with("/proc/irq/") && target.name.ends_with("/smp_affinity_list")
}

impl UndoLog {
    /// Applies the steps of `plan` in order or, after a crash, finishes them. Every step is checked before
    /// anything is changed: if one target is neither in the state that the plan found nor in the one it
    /// wants, the whole plan is rejected.
    ///
    /// For each step the old content is saved and the intention recorded, both durably. Then the host is
    /// changed, read back, and that is recorded. A step whose target already has the wanted state changes
    /// nothing and records nothing. Entries of earlier boots that did not survive the restart are recorded as
    /// expired first ([`UndoLog::expire`]).
    ///
    /// A step of this plan that was applied, but whose target was changed since, is applied again and is
    /// later rolled back to the current value. At boot, and when TuneD starts, other tools routinely set
    /// their values, and those are the previous state. Files differ: the rollback must report a manual edit,
    /// so it needs a separate plan ([`UndoError::PlanDiffers`]).
    pub fn apply(
        &mut self,
        plan: &str,
        steps: &[UndoStep],
        on_failure: OnFailure,
    ) -> Result<ApplyReport, UndoError> {
        self.apply_from(plan, steps, on_failure, Origin::Latest)
    }

    /// Applies an active plan again at the user's request. A repeated step is later rolled back to the state
    /// before it was applied for the first time, regardless of changes in between.
    pub fn apply_once_more(
        &mut self,
        plan: &str,
        steps: &[UndoStep],
        on_failure: OnFailure,
    ) -> Result<ApplyReport, UndoError> {
        self.apply_from(plan, steps, on_failure, Origin::First)
    }

    fn apply_from(
        &mut self,
        plan: &str,
        steps: &[UndoStep],
        on_failure: OnFailure,
        origin: Origin,
    ) -> Result<ApplyReport, UndoError> {
        if let Some(damage) = self.damage() {
            return Err(UndoError::damaged(damage));
        }
        self.expire()?;
        if let Some(other) = self.history().other_unfinished(plan) {
            return Err(UndoError::Refused(format!(
                "cannot apply another plan: plan {other} was applied only in part\nhint: apply it again to complete it, or \
                 roll it back"
            )));
        }
        self.refuse_contradictions(plan, steps)?;
        let all_seen = self.check_all(plan, steps)?;
        for step in steps.iter().filter(|step| self.history().entry(plan, &step.id).is_some()) {
            // An interrupted rollback may have left its new file beside a target that still has the wanted
            // state.
            self.target(&step.target)?.clear(&self.writer, &step.target)?;
        }
        let is_open = self.history().is_open(plan);
        let has_work = steps
            .iter()
            .zip(&all_seen)
            .any(|(step, seen)| seen.standing == Standing::Old || self.is_intended(plan, step));
        let mut report = ApplyReport::default();
        if !is_open && !has_work {
            report.unchanged = steps.iter().map(|step| step.id.clone()).collect();
            return Ok(report);
        }
        if !is_open {
            self.append(plan, Event::Begin)?;
        }
        // If this call fails, it rolls back to the state that it found, not to the first one.
        let found: BTreeMap<String, LoggedState> = steps
            .iter()
            .zip(&all_seen)
            .filter(|(step, _)| self.first_old(plan, step, origin).is_some() && !self.is_intended(plan, step))
            .map(|(step, seen)| (step.id.clone(), LoggedState::of(&seen.state)))
            .collect();
        let mut all_seen = all_seen.into_iter().peekable();
        for (at, step) in steps.iter().enumerate() {
            let Some(seen) = all_seen.next() else { break };
            let next = steps.get(at + 1).zip(all_seen.peek());
            let along = next.filter(|(next, seen)| {
                goes_along(next, step) && seen.standing == Standing::Old && !self.is_intended(plan, next)
            });
            if seen.standing == Standing::New && !self.is_intended(plan, step) {
                report.unchanged.push(step.id.clone());
                continue;
            }
            match self.apply_step(plan, step, seen, origin, along) {
                Ok(()) => report.done.push(step.id.clone()),
                Err(failure) if self.may_go_on(plan, step, &failure, on_failure) => {
                    report.failed.push((step.id.clone(), failure.error.to_string()));
                }
                Err(failure) => {
                    let mut begun = report.done;
                    let last = [step].into_iter().chain(along.map(|(next, _)| next));
                    begun.extend(last.map(|step| step.id.clone()));
                    return Err(self.take_back_all(plan, step, &failure.error, &begun, &found));
                }
            }
        }
        self.append(plan, Event::End)?;
        Ok(report)
    }

    fn is_intended(&self, plan: &str, step: &UndoStep) -> bool {
        self.history().entry(plan, &step.id).is_some_and(|e| e.progress == Progress::Intended)
    }

    /// The state before the step was applied for the first time, if it must return to that.
    fn first_old(&self, plan: &str, step: &UndoStep, origin: Origin) -> Option<LoggedState> {
        let entry = self.history().entry(plan, &step.id);
        let entry = entry.filter(|entry| origin == Origin::First && entry.target.kind != FILE);
        entry.map(|entry| entry.old.clone())
    }

    /// True if the step's file is neither in the state that this plan's step found nor in the one it left.
    fn is_edited(&self, plan: &str, step: &UndoStep, present: &State) -> Result<bool, HostError> {
        let entry = self.history().entry(plan, &step.id).filter(|entry| entry.target.kind == FILE);
        let Some(entry) = entry else { return Ok(false) };
        let same = |a: &State| entry.target.comparison.same(a, present);
        Ok(!same(&self.restore(&entry.old)?) && !same(&self.ours(entry)?))
    }

    fn refuse_contradictions(&self, plan: &str, steps: &[UndoStep]) -> Result<(), UndoError> {
        let mut ids = BTreeMap::new();
        let mut targets = BTreeMap::new();
        for step in steps {
            let twice = |first: &str, what| UndoError::twice(first, &step.id, what);
            if let Some(first) = ids.insert(&step.id, &step.id) {
                return Err(twice(first, "id"));
            }
            // Two paths may lead to one file; what counts is the target's identity.
            let place = self.target(&step.target)?.identity(&self.writer, &step.target)?;
            if let Some(first) = targets.insert((step.target.kind.as_str(), place), &step.id) {
                return Err(twice(first, "target"));
            }
            let Some(entry) = self.history().entry(plan, &step.id) else { continue };
            let new = self.restore(&entry.new)?;
            if entry.target != step.target || !step.target.comparison.same(&new, &step.new) {
                return Err(UndoError::PlanDiffers { plan: plan.to_owned(), step: step.id.clone() });
            }
        }
        Ok(())
    }

    fn check_all(&self, plan: &str, steps: &[UndoStep]) -> Result<Vec<ObservedTarget>, UndoError> {
        let mut all_seen = Vec::new();
        let mut conflicts = Vec::new();
        for step in steps {
            let present = self.read(&step.target)?;
            match standing(step, &present) {
                Some(Standing::Old) if self.is_edited(plan, step, &present)? => {
                    return Err(UndoError::PlanDiffers { plan: plan.to_owned(), step: step.id.clone() });
                }
                Some(standing) => all_seen.push(ObservedTarget { standing, state: present }),
                None if is_moved_by_rule(&step.target) => {
                    all_seen.push(ObservedTarget { standing: Standing::Old, state: present });
                }
                None => conflicts.push(Conflict {
                    plan: plan.to_owned(),
                    step: step.id.clone(),
                    name: step.target.name.clone(),
                    old: step.old.clone(),
                    ours: step.new.clone(),
                    present,
                    is_after_reboot: false,
                }),
            }
        }
        if conflicts.is_empty() { Ok(all_seen) } else { Err(UndoError::conflicts(&conflicts)) }
    }

    /// True if the steps after a failed one are still tried.
    fn may_go_on(&self, plan: &str, step: &UndoStep, failure: &Failure, on_failure: OnFailure) -> bool {
        match on_failure {
            OnFailure::RollBack => false,
            OnFailure::Continue => true,
            OnFailure::SkipRefused => {
                // A remaining entry means that the old state could not be restored.
                failure.is_at_target
                    && matches!(&failure.error, UndoError::Host(error) if error.is_refusal())
                    && step.target.kind != FILE
                    && self.history().entry(plan, &step.id).is_none()
            }
        }
    }

    /// `along`: the next step and its observed state, if this step's change also makes that one's.
    fn apply_step(
        &mut self,
        plan: &str,
        step: &UndoStep,
        seen: ObservedTarget,
        origin: Origin,
        along: Option<(&UndoStep, &ObservedTarget)>,
    ) -> Result<(), Failure> {
        if seen.standing == Standing::Old {
            // Read again: other steps came first, and the target may have changed since all were checked.
            let mut present = self.read(&step.target).map_err(at_target)?;
            let standing = standing(step, &present);
            let is_moving = standing.is_none() && is_moved_by_rule(&step.target);
            if standing.is_none() && !is_moving {
                let what = format!("{} has just changed to {present}", step.target.name);
                let error = HostError::io("apply", &step.target.name, std::io::Error::other(what));
                return Err(UndoError::from(error).into());
            }
            // An earlier step also affected this target: the state before that one is restored.
            if !step.target.comparison.same(&present, &seen.state) {
                present = seen.state;
            }
            if !self.is_intended(plan, step) {
                self.intend(plan, step, &present, origin)?;
            }
            // After a crash following the change, the host no longer shows the previous state.
            if let Some((next, seen)) = along {
                self.intend(plan, next, &seen.state, origin)?;
            }
            if standing == Some(Standing::Old) || is_moving {
                return self.change(plan, step, &present);
            }
        }
        // A crash happened between the change and its record, or an earlier step made the change.
        let target = self.target(&step.target).map_err(at_target)?;
        target.settle(&self.writer, &step.target).map_err(at_target)?;
        self.confirm(plan, step)
    }

    /// Makes the change, and rolls it back if it fails.
    fn change(&mut self, plan: &str, step: &UndoStep, present: &State) -> Result<(), Failure> {
        let mut new = step.new.clone();
        if let (State::File(new), State::File(old)) = (&mut new, present)
            && new.xattrs.is_empty()
        {
            new.xattrs.clone_from(&old.xattrs);
        }
        let written = self.target(&step.target).and_then(|t| t.write(&self.writer, &step.target, &new));
        let confirmed = written.map_err(at_target).and_then(|()| self.confirm(plan, step));
        confirmed.map_err(|failure| self.take_back(plan, step, present, failure))
    }

    fn intend(
        &mut self,
        plan: &str,
        step: &UndoStep,
        present: &State,
        origin: Origin,
    ) -> Result<(), UndoError> {
        let old = match self.first_old(plan, step, origin) {
            Some(old) => old,
            None => self.keep(present)?,
        };
        let new = self.keep(&step.new)?;
        let earlier = self.history().entry(plan, &step.id);
        let (again, mut directories) =
            earlier.map_or((false, Vec::new()), |entry| (true, entry.directories.clone()));
        if *present == State::Absent {
            let missing = self.target(&step.target)?.missing_directories(&self.writer, &step.target)?;
            directories.extend(missing.into_iter().filter(|d| !directories.contains(d)).collect::<Vec<_>>());
        }
        let (id, target) = (step.id.clone(), step.target.clone());
        self.append(plan, Event::Intend { step: id, target, old, new, directories, again })
    }

    /// Reads back, and records that the step is done.
    fn confirm(&mut self, plan: &str, step: &UndoStep) -> Result<(), Failure> {
        let present = self.read_back(&step.target, &step.new).map_err(at_target)?;
        if !step.target.comparison.same(&present, &step.new) {
            let what = format!("wrote {}, read back {present}", step.new);
            return Err(at_target(HostError::Refused { path: step.target.name.clone(), what }));
        }
        let read_back = self.keep(&present).map_err(UndoError::from)?;
        Ok(self.append(plan, Event::Done { step: step.id.clone(), read_back })?)
    }

    /// After a failed step: restores the old state at once, and records the resulting state. Returns the
    /// error.
    fn take_back(&mut self, plan: &str, step: &UndoStep, old: &State, failure: Failure) -> Failure {
        let reason = failure.error.to_string();
        let Some(entry) = self.history().entry(plan, &step.id).cloned() else { return failure };
        let restored = self.put_back(&step.target, old, &entry);
        // If even this cannot be read or recorded, the step stays intended, and the rollback checks again.
        if let Ok((present, false)) = restored {
            let is_old = step.target.comparison.same(&present, old);
            let present = if is_old { Ok(None) } else { self.keep(&present).map(Some) };
            if let Ok(present) = present {
                let _ = self.append(plan, Event::Failed { step: step.id.clone(), reason, present });
            }
        }
        failure
    }

    /// Restores `old` unless it is the current state, and removes leftovers. Returns the final state, and whether
    /// the record of the step's directories is still needed.
    fn put_back(&self, spec: &TargetSpec, old: &State, entry: &Entry) -> Result<(State, bool), HostError> {
        let target = self.target(spec)?;
        if !spec.comparison.same(&target.read(&self.writer, spec)?, old) {
            target.write(&self.writer, spec, old)?;
        }
        target.settle(&self.writer, spec)?;
        let (_, is_used) = self.remove_directories(entry)?;
        Ok((self.read_back(spec, old)?, is_used))
    }

    fn take_back_all(
        &mut self,
        plan: &str,
        step: &UndoStep,
        error: &UndoError,
        begun: &[String],
        found: &BTreeMap<String, LoggedState>,
    ) -> UndoError {
        let reason = error.to_string();
        let mut report = self.undo_to(
            |e| e.plan == plan && begun.contains(&e.step),
            |e| found.get(&e.step).cloned(),
            Until::Forever,
        );
        if report.left.is_empty()
            && let Err(error) = self.append(plan, Event::End)
        {
            report.not_recorded = Some(error.to_string());
        }
        UndoError::Step { step: step.id.clone(), reason, rolled_back: Box::new(report) }
    }
}

/// True if the kernel makes the change of `next` together with that of `step`.
fn goes_along(next: &UndoStep, step: &UndoStep) -> bool {
    let is_value = |step: &UndoStep| step.target.kind == VALUE;
    is_value(step)
        && is_value(next)
        && sysctl_zeroed_with(&step.target.name) == Some(next.target.name.as_str())
}

fn standing(step: &UndoStep, present: &State) -> Option<Standing> {
    let same = |a: &State| Comparison::same(step.target.comparison, a, present);
    if same(&step.new) {
        Some(Standing::New)
    } else if same(&step.old) || step.target.comparison.is_between(present, &step.old, &step.new) {
        Some(Standing::Old)
    } else {
        None
    }
}
