//! Switches settings of the plan in force off and on again, and measures both.
//!
//! Off is a rollback of the setting's steps, on is the run-time stage again: a crash in between leaves an undo log from
//! which the plan can be completed or rolled back, as after any interrupted apply.

use super::at_boot::apply_in_this_boot;
use super::stage::{ApplyStage, is_run_time};
use super::status::is_of_other_host;
use super::{FlowError, Site, check, log_check};
use lowlat_plan::{
    Plan,
    proof::{OnOffPair, ProofSchedule, ProvenSettings, SwitchGroup, switch_groups},
};
use lowlat_settings::change::Part;
use lowlat_undo::{State, TargetSpec, UndoLog, UndoStep};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// The switches of the plan in force.
#[derive(Debug)]
pub struct Switchboard<'a> {
    pub(super) site: &'a Site,
    plan: Plan,
    pub(super) plan_id: String,
}

/// The steps of settings that are switched together.
#[derive(Debug)]
struct Switch {
    steps: Vec<SwitchStep>,
}

#[derive(Debug)]
struct SwitchStep {
    id: String,
    target: TargetSpec,
    on: State,
    off: State,
}

/// What [`Switchboard::prove`] calls.
pub struct Measuring<'a> {
    /// Measures once: the figures, or the reason why the proof cannot go on.
    pub measure: &'a mut dyn FnMut() -> Result<Vec<f64>, String>,
    /// Learns how many pairs are done, and the settings that come next.
    pub tell: &'a mut dyn FnMut(u32, &[String]),
    /// Ends the proof after the present measurement.
    pub stop: &'a AtomicBool,
}

/// Switches left in the wrong position.
type Stuck = String;

impl<'a> Switchboard<'a> {
    /// # Errors
    /// No complete plan of this host is in force.
    pub fn open(site: &'a Site) -> Result<Self, FlowError> {
        let Some((in_force, plan)) = site.state.in_force()? else {
            return Err(FlowError::obstacle("no plan is in force"));
        };
        if !in_force.is_complete {
            return Err(FlowError::partly_applied(&in_force.plan_id));
        }
        if is_of_other_host(site, &plan) {
            let id = in_force.plan_id;
            return Err(FlowError::obstacle(format!("plan {id} was made for another host")));
        }
        Ok(Self { site, plan, plan_id: in_force.plan_id })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Measures each group with its settings on and off, in rounds over all groups, each in another order. At the end all
    /// settings are on, or the caller restores them.
    ///
    /// # Errors
    /// A measurement failed, or the undo log cannot be used.
    pub fn prove(
        &self,
        schedule: &ProofSchedule,
        with: &mut Measuring<'_>,
    ) -> Result<Vec<ProvenSettings>, FlowError> {
        let mut trials: Vec<(ProvenSettings, Option<Switch>)> =
            switch_groups(&self.plan).iter().map(|group| self.trial(group)).collect();
        let (mut done, began) = (0, Instant::now());
        for round in 0..schedule.rounds {
            if schedule.is_over(round, began.elapsed()) {
                break;
            }
            let mut order: Vec<usize> = (0..trials.len()).collect();
            fastrand::shuffle(&mut order);
            for at in order {
                let Some((proven, Some(switch))) = trials.get_mut(at) else { continue };
                // Relaxed: the flag orders nothing.
                if with.stop.load(Ordering::Relaxed) {
                    break;
                }
                (with.tell)(done, &proven.settings);
                match self.pair(switch, schedule.settle, with)? {
                    Ok(Some(pair)) => proven.pairs.push(pair),
                    Ok(None) => proven.disturbed_pairs += 1,
                    Err(stuck) => proven.unmeasured = Some(stuck),
                }
                done += 1;
                if proven.unmeasured.is_some() {
                    trials[at].1 = None;
                }
            }
        }
        let proven = trials.into_iter().map(|(mut proven, _)| {
            if proven.unmeasured.is_none() && proven.pairs.is_empty() && proven.disturbed_pairs > 0 {
                proven.unmeasured = Some("another program sets it again at once".to_owned());
            }
            proven
        });
        Ok(proven.collect())
    }

    /// Switches a group off and on once. Without a switch, the reason is in the record.
    fn trial(&self, group: &SwitchGroup) -> (ProvenSettings, Option<Switch>) {
        let switch = match group.fixed {
            Some(why) => Err(why.to_owned()),
            None => self.switch(group).unwrap_or_else(|error| Err(error.to_string())),
        };
        let changes = group.changes.iter().filter_map(|at| self.plan.changes.get(*at));
        let changes = changes.map(|change| {
            let kind = change.target.kind();
            let facts = kind.facts();
            format!("{}{}{} -> {}", facts.name, facts.separator, change.before.text(), change.after)
        });
        let proven = ProvenSettings {
            settings: group.settings.clone(),
            changes: changes.collect(),
            unmeasured: switch.as_ref().err().cloned(),
            ..ProvenSettings::default()
        };
        (proven, switch.ok())
    }

    fn switch(&self, group: &SwitchGroup) -> Result<Result<Switch, String>, FlowError> {
        let changes = group.changes.iter().filter_map(|at| self.plan.changes.get(*at).cloned());
        let plan = Plan { changes: changes.collect(), ..self.plan.clone() };
        let (log, host) = (self.log()?, self.site.snapshot());
        if let Some((_, why)) =
            check::left(self.site, |kind| log.knows(kind), &plan, &host).into_iter().next()
        {
            return Ok(Err(why));
        }
        let prepared = (self.site.prepare)(&plan, &host, &log, Part::RunTime)?;
        drop(log);
        if let Some(left) = prepared.left.into_iter().next() {
            return Ok(Err(left.reason));
        }
        let steps = prepared.steps.into_iter().map(|prepared| prepared.step);
        let steps = steps.map(|UndoStep { id, target, new, .. }| SwitchStep {
            id,
            target,
            off: new.clone(),
            on: new,
        });
        let mut switch = Switch { steps: steps.collect() };
        if !self.is(&switch, true)? {
            return Ok(Err("it is not in effect".to_owned()));
        }
        if let Err(stuck) = self.set(&switch, false)? {
            return Ok(Err(stuck));
        }
        let log = self.log()?;
        for step in &mut switch.steps {
            step.off = log.present(&step.target)?;
        }
        drop(log);
        switch.steps.retain(|step| !step.target.comparison.same(&step.off, &step.on));
        if switch.steps.is_empty() {
            return Ok(Err("it had this value before the plan".to_owned()));
        }
        Ok(self.set(&switch, true)?.map(|()| switch))
    }

    /// Measures with the settings on and off, in random order. Each measurement follows one switch, so that switching
    /// itself affects both equally. `None` if another program moved the switch.
    fn pair(
        &self,
        switch: &Switch,
        settle: Duration,
        with: &mut Measuring<'_>,
    ) -> Result<Result<Option<OnOffPair>, Stuck>, FlowError> {
        let is_on_first = fastrand::bool();
        if is_on_first && let Err(stuck) = self.set(switch, false)? {
            return Ok(Err(stuck));
        }
        let (mut figures, mut is_undisturbed) = ([Vec::new(), Vec::new()], true);
        for is_on in [is_on_first, !is_on_first] {
            if let Err(stuck) = self.set(switch, is_on)? {
                return Ok(Err(stuck));
            }
            thread::sleep(settle);
            let measured = (with.measure)();
            figures[usize::from(is_on)] = measured.map_err(FlowError::Refused)?;
            is_undisturbed &= self.is(switch, is_on)?;
        }
        if let Err(stuck) = self.set(switch, true)? {
            return Ok(Err(stuck));
        }
        let [off, on] = figures;
        Ok(Ok(is_undisturbed.then_some(OnOffPair { on, off, is_on_first })))
    }

    /// The undo log, as long as the plan is in force: what a rollback has restored stays so.
    pub(super) fn log(&self) -> Result<UndoLog, FlowError> {
        let log = self.site.open_log()?;
        log_check::refuse(self.site, &log)?;
        if self.site.state.note()?.is_none_or(|(now, _)| now.plan_id != self.plan_id) {
            return Err(FlowError::obstacle(format!("plan {} is no longer in force", self.plan_id)));
        }
        Ok(log)
    }

    /// True if all steps are in this position.
    fn is(&self, switch: &Switch, is_on: bool) -> Result<bool, FlowError> {
        let log = self.log()?;
        for step in &switch.steps {
            let wanted = if is_on { &step.on } else { &step.off };
            if !step.target.comparison.same(&log.present(&step.target)?, wanted) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves a switch. The inner error names what could not be moved.
    fn set(&self, switch: &Switch, is_on: bool) -> Result<Result<(), Stuck>, FlowError> {
        let mut log = self.log()?;
        log.expire()?;
        log.close_where(|id, _| is_run_time(id))?;
        let moved = if is_on { self.on(&mut log, switch) } else { Ok(off(&mut log, switch)) };
        self.site.seal(&log)?;
        moved
    }

    fn on(&self, log: &mut UndoLog, switch: &Switch) -> Result<Result<(), Stuck>, FlowError> {
        let mut steps = Vec::new();
        for step in &switch.steps {
            let prepared = log.step(step.target.clone(), step.on.clone())?;
            steps.push(UndoStep { id: step.id.clone(), ..prepared });
        }
        let report = apply_in_this_boot(self.site, log, &self.plan_id, ApplyStage::Run, &steps)?;
        let failed = report.failed.into_iter().next();
        Ok(failed.map_or(Ok(()), |(step, why)| Err(format!("cannot switch it on: {step}: {why}"))))
    }
}

fn off(log: &mut UndoLog, switch: &Switch) -> Result<(), Stuck> {
    let is_ours = |kind: &str, name: &str| {
        switch.steps.iter().any(|step| step.target.kind == kind && step.target.name == name)
    };
    let report = log
        .rollback_where(|entry| is_run_time(&entry.plan) && is_ours(&entry.target.kind, &entry.target.name));
    if report.left.is_empty() && report.not_recorded.is_none() {
        return Ok(());
    }
    Err(format!("cannot switch it off: {report}"))
}
