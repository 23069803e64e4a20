//! Applies a plan: all of it, or nothing.

use super::ready::ORDER;
use super::stage::{ApplyStage, ROUNDS_MAX, is_again, plan_of};
use super::{FlowError, Ready, Site, at_boot, log_check, persist};
use crate::InForce;
use crate::boot_loader::FileChange;
use crate::steps;
use crate::units;
use lowlat_host::HostSnapshot;
use lowlat_plan::{
    Plan,
    outcome::{ApplyOutcome, ChangeOutcome, Fate},
    verify::Refusal,
};
use lowlat_settings::change::Target;
use lowlat_undo::{ApplyReport, Entry, OnFailure, UndoError, UndoLog, UndoStep};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct Progress {
    /// Fate and reasons by the change's index in the plan.
    changes: BTreeMap<usize, ChangeOutcome>,
    paths: Vec<String>,
    notes: Vec<String>,
    /// Changes that were refused, wholly or in part.
    refused: Vec<Refusal>,
    is_changed: bool,
}

impl Progress {
    fn note(&mut self, change: usize, fate: Fate, reason: Option<String>) {
        let outcome = self.changes.entry(change).or_insert(ChangeOutcome {
            change,
            fate: Fate::Unchanged,
            reasons: Vec::new(),
        });
        outcome.fate = outcome.fate.max(fate);
        outcome.reasons.extend(reason);
    }

    fn refuse(&mut self, plan: &Plan, change: usize, reason: String) {
        if let Some(planned) = plan.changes.get(change) {
            self.refused.push(Refusal { target: planned.target.clone(), reason: reason.clone() });
        }
        self.note(change, Fate::Refused, Some(reason));
    }
}

/// True if a change survives reboots instead of being made again in each boot.
fn is_lasting(refusal: &Refusal) -> bool {
    !matches!(refusal.target.kind().part(), steps::Part::RunTime | steps::Part::Queues)
}

impl Ready {
    /// Applies the plan. Each stage goes through the undo log; if one fails, the changes of this call are
    /// rolled back. `tell` receives each stage as it starts.
    pub fn carry_out(
        &self,
        site: &Site,
        host: &HostSnapshot,
        tell: &mut dyn FnMut(&str),
    ) -> Result<ApplyOutcome, FlowError> {
        let mut log = site.open_log()?;
        log_check::refuse(site, &log)?;
        // The dead-man switch may have fired while the user was asked.
        if site.state.in_force()?.map(|(now, _)| now) != self.seen {
            return Err(FlowError::obstacle(
                "another process changed the plan in force; check with `lowlat tune status`, and run it again",
            ));
        }
        let plan_id = self.plan.id();
        log.expire()?;
        // Stages resume one by one. What an earlier boot left incomplete is never completed.
        log.close_where(|id, _| plan_of(id) == plan_id || is_again(id))?;
        let before: BTreeSet<(String, String)> =
            log.history().entries.iter().map(|entry| (entry.plan.clone(), entry.step.clone())).collect();
        let mut progress = Progress::default();
        let mut carried_out = self.mark(site, &log, &plan_id, None);
        for stage in ORDER {
            if carried_out.is_ok() {
                tell(doing(stage));
                carried_out = self.stage(site, host, &mut log, stage, &mut progress);
            }
            carried_out = carried_out.and_then(|()| Ok(site.seal(&log)?));
        }
        for (change, reason) in &self.left {
            progress.refuse(&self.plan, *change, reason.clone());
        }
        let refused = progress.refused.iter().filter(|refusal| is_lasting(refusal)).cloned().collect();
        let carried_out = carried_out.and_then(|()| self.mark(site, &log, &plan_id, Some(refused)));
        if let Err(error) = carried_out {
            let is_ours = |entry: &Entry| {
                (self.is_resumed && plan_of(&entry.plan) == plan_id)
                    || !before.contains(&(entry.plan.clone(), entry.step.clone()))
            };
            return Err(self.take_back(site, log, &error, is_ours));
        }
        drop(log);
        Ok(self.finish(site, plan_id, progress, tell))
    }

    /// Records the plan as in force: as incomplete before the first change; as complete after the last one, with the
    /// lasting changes that were refused.
    fn mark(
        &self,
        site: &Site,
        log: &UndoLog,
        plan_id: &str,
        refused: Option<Vec<Refusal>>,
    ) -> Result<(), FlowError> {
        let now = self.now.as_ref();
        let in_force = InForce {
            plan_id: plan_id.to_owned(),
            applied_unix_ms: now.map_or_else(Site::now_unix_ms, |now| now.applied_unix_ms),
            applied_boot_id: now
                .map_or_else(|| site.boot_id().text().to_owned(), |now| now.applied_boot_id.clone()),
            is_complete: refused.is_some(),
            refused: refused.unwrap_or_default(),
            confirm_within_s: self.confirm_within_s.or(now.and_then(|now| now.confirm_within_s)),
            earlier: now.map_or_else(|| self.earlier.clone().map(Box::new), |now| now.earlier.clone()),
        };
        site.state.put_in_force(&in_force, &self.plan)?;
        Ok(site.seal(log)?)
    }

    fn stage(
        &self,
        site: &Site,
        host: &HostSnapshot,
        log: &mut UndoLog,
        stage: ApplyStage,
        progress: &mut Progress,
    ) -> Result<(), FlowError> {
        match stage {
            ApplyStage::Confirm => self.arm(site, log, progress),
            ApplyStage::Tuned => {
                self.prepared(site, host, log, stage, &[steps::Part::Files, steps::Part::Tuned], progress)?;
                reload(site, &progress.paths)
            }
            ApplyStage::Queues => self.prepared(site, host, log, stage, &[steps::Part::Queues], progress),
            ApplyStage::Run if progress.is_changed => {
                // Earlier stages may have moved interrupts, and TuneD may have set values.
                let host = site.snapshot();
                self.prepared(site, &host, log, stage, &[steps::Part::RunTime], progress)
            }
            ApplyStage::Run => self.prepared(site, host, log, stage, &[steps::Part::RunTime], progress),
            ApplyStage::Files if self.options.only_run_time => Ok(()),
            ApplyStage::Files => self.prepared(site, host, log, stage, &[steps::Part::Files], progress),
            ApplyStage::Boot => self.sources(site, log, progress),
            ApplyStage::Loader => self.generate(site, log, progress),
            ApplyStage::Persist => {
                let steps = persist::steps(log, &self.units, self.role_file.as_deref())?;
                self.steps(log, stage, &steps, progress).map(drop)
            }
        }
    }

    /// Arms the dead-man switch. It comes first, so that it can roll back all later stages.
    fn arm(&self, site: &Site, log: &mut UndoLog, progress: &mut Progress) -> Result<(), FlowError> {
        if self.confirm_units.is_empty() {
            return Ok(());
        }
        let steps = persist::steps(log, &self.confirm_units, None)?;
        self.steps(log, ApplyStage::Confirm, &steps, progress)?;
        site.state.put_resting_in(None)?;
        let Some(manager) = &site.manager else { return Ok(()) };
        let failed = |error| FlowError::manager(&format!("start {}", units::CONFIRM), &error);
        manager.daemon_reload().map_err(failed)?;
        // Restarted, so that the time counts from now.
        manager.stop(units::CONFIRM).map_err(failed)?;
        manager.start(units::CONFIRM).map_err(failed)
    }

    /// Applies the changes that become steps.
    fn prepared(
        &self,
        site: &Site,
        host: &HostSnapshot,
        log: &mut UndoLog,
        stage: ApplyStage,
        of: &[steps::Part],
        progress: &mut Progress,
    ) -> Result<(), FlowError> {
        let (plan, places) = self.possible(stage);
        let place = |change: usize| places.get(change).copied().unwrap_or(change);
        let mut all = Vec::new();
        for of in of {
            let preparation = (site.prepare)(&plan, host, log, *of)?;
            for left in preparation.left {
                progress.refuse(&self.plan, place(left.change), left.reason);
            }
            progress.notes.extend(preparation.notes.into_iter().map(|note| note.text));
            all.extend(preparation.steps);
        }
        let steps: Vec<UndoStep> = all.iter().map(|prepared| prepared.step.clone()).collect();
        let report = self.steps(log, stage, &steps, progress)?;
        for prepared in &all {
            let id = &prepared.step.id;
            let refused = report.failed.iter().find(|(step, _)| step == id).map(|(_, why)| why.clone());
            let fate = match &refused {
                Some(_) => Fate::Refused,
                None if report.done.contains(id) => Fate::Done,
                None => Fate::Unchanged,
            };
            for change in prepared.also.iter().chain([&prepared.change]) {
                match &refused {
                    Some(why) => progress.refuse(&self.plan, place(*change), why.clone()),
                    None => progress.note(place(*change), fate, None),
                }
            }
        }
        Ok(())
    }

    /// Writes files of the boot loader.
    fn files(
        &self,
        log: &mut UndoLog,
        stage: ApplyStage,
        files: &[FileChange],
        progress: &mut Progress,
    ) -> Result<(), FlowError> {
        let steps = file_steps(log, files)?;
        let report = self.steps(log, stage, &steps, progress)?;
        if let Some(line) = self.line().filter(|_| !steps.is_empty()) {
            let fate = if report.done.is_empty() { Fate::Unchanged } else { Fate::Done };
            progress.note(line, fate, None);
        }
        Ok(())
    }

    /// Writes the boot loader's configuration. The files are read again, because a kernel may have been
    /// installed or a file edited since the plan was shown.
    fn sources(&self, site: &Site, log: &mut UndoLog, progress: &mut Progress) -> Result<(), FlowError> {
        let (Some(loader), Some(tokens)) = (&self.loader, self.plan.boot_tokens()) else { return Ok(()) };
        let files = loader.sources(&site.root, tokens)?;
        self.files(log, ApplyStage::Boot, &files, progress)
    }

    /// The index of the change of the command line.
    fn line(&self) -> Option<usize> {
        self.plan.changes.iter().position(|change| matches!(change.target, Target::CommandLine { .. }))
    }

    fn generate(&self, site: &Site, log: &mut UndoLog, progress: &mut Progress) -> Result<(), FlowError> {
        let Some(loader) = &self.loader else { return Ok(()) };
        let Some(programs) = &site.programs else {
            if let (Some(line), Some(command)) = (self.line(), loader.generator(&site.root))
                && !at_boot::comes_next(site, &self.plan)
            {
                let reason = format!(
                    "written for {}, but its menu is unchanged, because the generator needs the running host; run \
                     `{command}` inside the tree",
                    loader.name()
                );
                progress.refuse(&self.plan, line, reason);
            }
            return Ok(());
        };
        let files = loader.generated(&site.root, programs.as_ref())?;
        self.files(log, ApplyStage::Loader, &files, progress)
    }

    fn steps(
        &self,
        log: &mut UndoLog,
        stage: ApplyStage,
        steps: &[UndoStep],
        progress: &mut Progress,
    ) -> Result<ApplyReport, FlowError> {
        let on_failure = match stage {
            ApplyStage::Tuned | ApplyStage::Queues | ApplyStage::Run | ApplyStage::Files => {
                OnFailure::SkipRefused
            }
            _ => OnFailure::RollBack,
        };
        let plan_id = self.plan.id();
        // A plan applied again starts a new round: another plan may have changed the host since, and the
        // values from before it must be recorded.
        let has_steps = |round: &usize| {
            let id = stage.id(&plan_id, *round);
            self.now.is_none() && log.history().entries.iter().any(|entry| entry.plan == id)
        };
        let mut round = (0..ROUNDS_MAX).find(|round| !has_steps(round)).unwrap_or(ROUNDS_MAX);
        let report = loop {
            match log.apply_once_more(&stage.id(&plan_id, round), steps, on_failure) {
                Err(UndoError::PlanDiffers { .. }) if round < ROUNDS_MAX => round += 1,
                applied => break applied?,
            }
        };
        progress.is_changed |= !report.done.is_empty();
        let done = steps.iter().filter(|step| step.target.kind == "file" && report.done.contains(&step.id));
        for step in done {
            // Generated files are always rewritten.
            if stage != ApplyStage::Loader && is_in_earlier_round(log, &plan_id, stage, round, step)? {
                progress.notes.push(format!(
                    "{} was edited after lowlat wrote it; lowlat wrote its content again, and the edited version is \
                     in the undo log",
                    step.target.name
                ));
            }
            progress.paths.push(step.target.name.clone());
        }
        Ok(report)
    }

    /// After a failure: rolls back all changes of this call, and restores the plan that was in force before.
    fn take_back(
        &self,
        site: &Site,
        mut log: UndoLog,
        error: &FlowError,
        is_ours: impl Fn(&Entry) -> bool,
    ) -> FlowError {
        let touched: Vec<String> = log
            .history()
            .entries
            .iter()
            .filter(|entry| is_ours(entry) && entry.target.kind == "file")
            .map(|entry| entry.target.name.clone())
            .collect();
        let report = log.rollback_where(is_ours);
        let sealed = site.seal(&log).err();
        let is_over = log.history().entries.is_empty();
        drop(log);
        let mut notes = persist::tell_manager(site, touched.iter().map(String::as_str));
        if let Some(manager) = site.manager.as_ref().filter(|_| !self.confirm_units.is_empty()) {
            let _ = manager.stop(units::CONFIRM);
            // The switch of the restored plan restarts with its full time.
            let is_waiting = self.earlier.as_ref().is_some_and(|plan| plan.confirm_within_s.is_some());
            if is_waiting && let Err(error) = manager.start(units::CONFIRM) {
                notes.push(format!("{} failed to start: {error}", units::CONFIRM));
            }
        }
        if report.left.is_empty() {
            let restored = match &self.earlier {
                Some(earlier) => put_back(site, earlier),
                None => site.state.take_out_of_force().map_err(FlowError::from),
            };
            notes.extend(restored.err().map(|error| error.to_string()));
            if is_over && self.earlier.is_none() {
                notes.extend(site.state.discard().err().map(|error| error.to_string()));
            }
        }
        notes.extend(sealed.map(|error| error.to_string()));
        let rolled_back = if report.left.is_empty() {
            "all changes were rolled back"
        } else {
            "some changes could not be rolled back; run `lowlat tune rollback`"
        };
        notes.insert(0, format!("{rolled_back} ({report})"));
        let rolled_back = notes.join("\n");
        let reason = error.to_string().replace("\nhint: ", "; ");
        FlowError::Refused(format!("{reason}\n{rolled_back}"))
    }

    /// After the last change: reloads the service manager, and starts the units.
    fn finish(
        &self,
        site: &Site,
        plan_id: String,
        mut progress: Progress,
        tell: &mut dyn FnMut(&str),
    ) -> ApplyOutcome {
        tell("starting units");
        let needs_reboot = at_boot::is_reboot_pending(site, &self.plan, &progress.refused);
        let mut refused = std::mem::take(&mut progress.refused);
        refused.retain(|refusal| !is_lasting(refusal));
        let recorded = site.state.put_refused(site.boot_id().text(), refused);
        progress.notes.extend(recorded.err().map(|error| error.to_string()));
        let paths: Vec<String> = std::mem::take(&mut progress.paths);
        progress.notes.extend(persist::tell_manager(site, paths.iter().map(String::as_str)));
        if let Some(manager) = &site.manager {
            let started = [units::APPLY, units::WATCH];
            for unit in started.iter().filter(|name| self.units.iter().any(|unit| unit.name == **name)) {
                if let Err(error) = manager.start(unit) {
                    progress.notes.push(format!("{unit} failed to start: {error}"));
                }
            }
        }
        for change in 0..self.plan.changes.len() {
            progress.note(change, Fate::Unchanged, None);
        }
        let mut notes = self.notes.clone();
        notes.append(&mut progress.notes);
        ApplyOutcome {
            document: ApplyOutcome::DOCUMENT.to_owned(),
            schema_version: ApplyOutcome::SCHEMA_VERSION,
            plan_id,
            is_changed: progress.is_changed,
            changes: progress.changes.into_values().collect(),
            boot_loader: self.loader.as_ref().map(|loader| loader.name().to_owned()),
            units: self.confirm_units.iter().chain(&self.units).map(|unit| units::path(unit.name)).collect(),
            confirm_within_s: self.confirm_within_s,
            needs_reboot,
            notes,
        }
    }
}

/// Reloads the service manager if unit files were written that a later stage starts.
fn reload(site: &Site, paths: &[String]) -> Result<(), FlowError> {
    let is_unit = |path: &String| path.starts_with(&format!("{}/", units::DIRECTORY));
    match site.manager.as_ref().filter(|_| paths.iter().any(is_unit)) {
        Some(manager) => {
            manager.daemon_reload().map_err(|error| FlowError::manager("reload unit files", &error))
        }
        None => Ok(()),
    }
}

/// Records an earlier plan as in force again.
pub(super) fn put_back(site: &Site, earlier: &InForce) -> Result<(), FlowError> {
    let plan: Option<Plan> = site.state.plan(&earlier.plan_id)?;
    match plan {
        Some(plan) => Ok(site.state.put_in_force(earlier, &plan)?),
        None => Ok(site.state.take_out_of_force()?),
    }
}

/// Files of a boot loader as steps, with their present state as the old state.
pub(super) fn file_steps(log: &UndoLog, files: &[FileChange]) -> Result<Vec<UndoStep>, FlowError> {
    let step = |file: &FileChange| -> Result<UndoStep, FlowError> {
        let target = file.target();
        let old = log.present(&target)?;
        Ok(UndoStep { id: target.name.clone(), target, old, new: file.new.clone() })
    };
    files.iter().map(step).collect()
}

/// True if an earlier round of the stage wrote the same state.
fn is_in_earlier_round(
    log: &UndoLog,
    plan_id: &str,
    stage: ApplyStage,
    round: usize,
    step: &UndoStep,
) -> Result<bool, FlowError> {
    for round in 0..round {
        if let Some(entry) = log.history().entry(&stage.id(plan_id, round), &step.id)
            && entry.target.comparison.same(&log.restore(&entry.new)?, &step.new)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn doing(stage: ApplyStage) -> &'static str {
    match stage {
        ApplyStage::Confirm => "arming the dead-man switch",
        ApplyStage::Tuned => "preparing TuneD and units",
        ApplyStage::Queues => "setting queues of interfaces",
        ApplyStage::Run => "setting run-time values",
        ApplyStage::Files => "writing files",
        ApplyStage::Boot => "writing the boot loader's configuration",
        ApplyStage::Loader => "generating the boot menu",
        ApplyStage::Persist => "writing units",
    }
}
