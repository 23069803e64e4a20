//! Applies a plan: all of it, or nothing.

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

/// An apply on its way.
struct Applying<'a> {
    ready: &'a Ready,
    site: &'a Site,
    plan_id: String,
    log: UndoLog,
    /// Fate and reasons by the change's index in the plan.
    changes: BTreeMap<usize, ChangeOutcome>,
    paths: Vec<String>,
    notes: Vec<String>,
    /// Changes that were refused, wholly or in part.
    refused: Vec<Refusal>,
    is_changed: bool,
}

impl Applying<'_> {
    fn note(&mut self, change: usize, fate: Fate, reason: Option<String>) {
        let outcome = self.changes.entry(change).or_insert(ChangeOutcome {
            change,
            fate: Fate::Unchanged,
            reasons: Vec::new(),
        });
        outcome.fate = outcome.fate.max(fate);
        outcome.reasons.extend(reason);
    }

    fn refuse(&mut self, change: usize, reason: String) {
        self.refused.extend(at_boot::refusal(&self.ready.plan, change, reason.clone()));
        self.note(change, Fate::Refused, Some(reason));
    }

    /// Records the plan as in force: as incomplete before the first change; as complete after the last one, with the
    /// lasting changes that were refused.
    fn mark(&self, refused: Option<Vec<Refusal>>) -> Result<(), FlowError> {
        let (site, ready) = (self.site, self.ready);
        let now = ready.now.as_ref();
        let in_force = InForce {
            plan_id: self.plan_id.clone(),
            applied_unix_ms: now.map_or_else(Site::now_unix_ms, |now| now.applied_unix_ms),
            applied_boot_id: now
                .map_or_else(|| site.boot_id().text().to_owned(), |now| now.applied_boot_id.clone()),
            is_complete: refused.is_some(),
            refused: refused.unwrap_or_default(),
            confirm_within_s: ready.confirm_within_s.or(now.and_then(|now| now.confirm_within_s)),
            earlier: now.map_or_else(|| ready.earlier.clone().map(Box::new), |now| now.earlier.clone()),
        };
        site.state.put_in_force(&in_force, &ready.plan)?;
        Ok(site.seal(&self.log)?)
    }

    fn stage(&mut self, host: &HostSnapshot, stage: ApplyStage) -> Result<(), FlowError> {
        match stage {
            ApplyStage::Confirm => self.arm(),
            ApplyStage::Tuned => {
                self.prepared(host, stage, &[steps::Part::Files, steps::Part::Tuned])?;
                reload(self.site, &self.paths)
            }
            ApplyStage::Queues => self.prepared(host, stage, &[steps::Part::Queues]),
            // Earlier stages may have moved interrupts, and TuneD may have set values.
            ApplyStage::Run if self.is_changed => {
                self.prepared(&self.site.snapshot(), stage, &[steps::Part::RunTime])
            }
            ApplyStage::Run => self.prepared(host, stage, &[steps::Part::RunTime]),
            ApplyStage::Files if self.ready.options.only_run_time => Ok(()),
            ApplyStage::Files => self.prepared(host, stage, &[steps::Part::Files]),
            ApplyStage::Boot => self.sources(),
            ApplyStage::Loader => self.generate(),
            ApplyStage::Persist => {
                let steps = persist::steps(&self.log, &self.ready.units, self.ready.role_file.as_deref())?;
                self.steps(stage, &steps).map(drop)
            }
        }
    }

    /// Arms the dead-man switch. It comes first, so that it can roll back all later stages.
    fn arm(&mut self) -> Result<(), FlowError> {
        if self.ready.confirm_units.is_empty() {
            return Ok(());
        }
        let steps = persist::steps(&self.log, &self.ready.confirm_units, None)?;
        self.steps(ApplyStage::Confirm, &steps)?;
        self.site.state.put_resting_in(None)?;
        let Some(manager) = &self.site.manager else { return Ok(()) };
        let failed = |error| FlowError::manager(&format!("start {}", units::CONFIRM), &error);
        manager.daemon_reload().map_err(failed)?;
        // Restarted, so that the time counts from now.
        manager.stop(units::CONFIRM).map_err(failed)?;
        manager.start(units::CONFIRM).map_err(failed)
    }

    /// Applies the changes that become steps.
    fn prepared(
        &mut self,
        host: &HostSnapshot,
        stage: ApplyStage,
        of: &[steps::Part],
    ) -> Result<(), FlowError> {
        let (plan, places) = self.ready.possible(stage);
        let place = |change: usize| places.get(change).copied().unwrap_or(change);
        let mut all = Vec::new();
        for of in of {
            let preparation = (self.site.prepare)(&plan, host, &self.log, *of)?;
            for left in preparation.left {
                self.refuse(place(left.change), left.reason);
            }
            self.notes.extend(preparation.notes.into_iter().map(|note| note.text));
            all.extend(preparation.steps);
        }
        let steps: Vec<UndoStep> = all.iter().map(|prepared| prepared.step.clone()).collect();
        let report = self.steps(stage, &steps)?;
        for prepared in &all {
            let id = &prepared.step.id;
            let refused = report.failed.iter().find(|(step, _)| step == id).map(|(_, why)| why.clone());
            let fate = match &refused {
                Some(_) => Fate::Refused,
                None if report.done.contains(id) => Fate::Done,
                None => Fate::Unchanged,
            };
            for change in prepared.changes() {
                match &refused {
                    Some(why) => self.refuse(place(change), why.clone()),
                    None => self.note(place(change), fate, None),
                }
            }
        }
        Ok(())
    }

    /// Writes files of the boot loader.
    fn files(&mut self, stage: ApplyStage, files: &[FileChange]) -> Result<(), FlowError> {
        let steps = file_steps(&self.log, files)?;
        let report = self.steps(stage, &steps)?;
        if let Some(line) = self.line().filter(|_| !steps.is_empty()) {
            let fate = if report.done.is_empty() { Fate::Unchanged } else { Fate::Done };
            self.note(line, fate, None);
        }
        Ok(())
    }

    /// Writes the boot loader's configuration. The files are read again, because a kernel may have been
    /// installed or a file edited since the plan was shown.
    fn sources(&mut self) -> Result<(), FlowError> {
        let (Some(loader), Some(tokens)) = (&self.ready.loader, self.ready.plan.boot_tokens()) else {
            return Ok(());
        };
        let files = loader.sources(&self.site.root, tokens)?;
        self.files(ApplyStage::Boot, &files)
    }

    /// The index of the change of the command line.
    fn line(&self) -> Option<usize> {
        self.ready.plan.changes.iter().position(|change| matches!(change.target, Target::CommandLine { .. }))
    }

    fn generate(&mut self) -> Result<(), FlowError> {
        let (site, ready) = (self.site, self.ready);
        let Some(loader) = &ready.loader else { return Ok(()) };
        let Some(programs) = &site.programs else {
            if let (Some(line), Some(command)) = (self.line(), loader.generator(&site.root))
                && !at_boot::comes_next(site, &ready.plan)
            {
                let reason = format!(
                    "written for {}, but its menu is unchanged, because the generator needs the running host; run \
                     `{command}` inside the tree",
                    loader.name()
                );
                self.refuse(line, reason);
            }
            return Ok(());
        };
        let files = loader.generated(&site.root, programs.as_ref())?;
        self.files(ApplyStage::Loader, &files)
    }

    fn steps(&mut self, stage: ApplyStage, steps: &[UndoStep]) -> Result<ApplyReport, FlowError> {
        let on_failure = match stage {
            ApplyStage::Tuned | ApplyStage::Queues | ApplyStage::Run | ApplyStage::Files => {
                OnFailure::SkipRefused
            }
            _ => OnFailure::RollBack,
        };
        // A plan applied again starts a new round: another plan may have changed the host since, and the
        // values from before it must be recorded.
        let has_steps = |round: &usize| {
            let id = stage.id(&self.plan_id, *round);
            self.ready.now.is_none() && self.log.history().entries.iter().any(|entry| entry.plan == id)
        };
        let mut round = (0..ROUNDS_MAX).find(|round| !has_steps(round)).unwrap_or(ROUNDS_MAX);
        let report = loop {
            match self.log.apply_once_more(&stage.id(&self.plan_id, round), steps, on_failure) {
                Err(UndoError::PlanDiffers { .. }) if round < ROUNDS_MAX => round += 1,
                applied => break applied?,
            }
        };
        self.is_changed |= !report.done.is_empty();
        let done = steps.iter().filter(|step| step.target.kind == "file" && report.done.contains(&step.id));
        for step in done {
            // Generated files are always rewritten.
            if stage != ApplyStage::Loader && self.is_in_earlier_round(stage, round, step)? {
                self.notes.push(format!(
                    "{} was edited after lowlat wrote it; lowlat wrote its content again, and the edited version is \
                     in the undo log",
                    step.target.name
                ));
            }
            self.paths.push(step.target.name.clone());
        }
        Ok(report)
    }

    /// After a failure: rolls back all changes of this call, and restores the plan that was in force before.
    fn take_back(self, error: &FlowError, is_ours: impl Fn(&str, &Entry) -> bool) -> FlowError {
        let Self { site, ready, plan_id, mut log, .. } = self;
        let is_ours = |entry: &Entry| is_ours(&plan_id, entry);
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
        let manager = site.manager.as_ref().filter(|_| !ready.confirm_units.is_empty());
        // Before the reload, at which a timer whose service is gone fails.
        let _ = manager.map(|manager| manager.stop(units::CONFIRM));
        let mut notes = persist::tell_manager(site, touched.iter().map(String::as_str));
        if let Some(manager) = manager {
            // The switch of the restored plan restarts with its full time.
            let is_waiting = ready.earlier.as_ref().is_some_and(|plan| plan.confirm_within_s.is_some());
            if is_waiting && let Err(error) = manager.start(units::CONFIRM) {
                notes.push(format!("{} failed to start: {error}", units::CONFIRM));
            }
        }
        if report.left.is_empty() {
            let restored = match &ready.earlier {
                Some(earlier) => put_back(site, earlier),
                None => site.state.take_out_of_force().map_err(FlowError::from),
            };
            notes.extend(restored.err().map(|error| error.to_string()));
            if is_over && ready.earlier.is_none() {
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
    fn finish(mut self, tell: &mut dyn FnMut(&str)) -> ApplyOutcome {
        tell("starting units");
        for change in 0..self.ready.plan.changes.len() {
            self.note(change, Fate::Unchanged, None);
        }
        let Self { ready, site, plan_id, log, changes, paths, mut notes, mut refused, is_changed } = self;
        drop(log);
        let needs_reboot = at_boot::is_reboot_pending(site, &ready.plan, &refused);
        refused.retain(|refusal| !is_lasting(refusal));
        let recorded = site.state.put_refused(site.boot_id().text(), refused);
        notes.extend(recorded.err().map(|error| error.to_string()));
        notes.extend(persist::tell_manager(site, paths.iter().map(String::as_str)));
        if let Some(manager) = &site.manager {
            let started = [units::APPLY, units::WATCH];
            for unit in started.iter().filter(|name| ready.units.iter().any(|unit| unit.name == **name)) {
                if let Err(error) = manager.start(unit) {
                    notes.push(format!("{unit} failed to start: {error}"));
                }
            }
        }
        ApplyOutcome {
            plan_id,
            is_changed,
            changes: changes.into_values().collect(),
            boot_loader: ready.loader.as_ref().map(|loader| loader.name().to_owned()),
            units: ready
                .confirm_units
                .iter()
                .chain(&ready.units)
                .map(|unit| units::path(unit.name))
                .collect(),
            confirm_within_s: ready.confirm_within_s,
            needs_reboot,
            notes: ready.notes.iter().cloned().chain(notes).collect(),
            ..ApplyOutcome::of_nothing(&ready.plan)
        }
    }

    /// True if an earlier round of the stage wrote the same state.
    fn is_in_earlier_round(
        &self,
        stage: ApplyStage,
        round: usize,
        step: &UndoStep,
    ) -> Result<bool, FlowError> {
        for round in 0..round {
            if let Some(entry) = self.log.history().entry(&stage.id(&self.plan_id, round), &step.id)
                && entry.target.comparison.same(&self.log.restore(&entry.new)?, &step.new)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// True if a change survives reboots instead of being made again in each boot.
fn is_lasting(refusal: &Refusal) -> bool {
    !matches!(refusal.target.kind().facts().part, steps::Part::RunTime | steps::Part::Queues)
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
        let mut applying = Applying {
            ready: self,
            site,
            plan_id,
            log,
            changes: BTreeMap::new(),
            paths: Vec::new(),
            notes: Vec::new(),
            refused: Vec::new(),
            is_changed: false,
        };
        let mut carried_out = applying.mark(None);
        for stage in ApplyStage::ORDER {
            if carried_out.is_ok() {
                tell(stage.words().1);
                carried_out = applying.stage(host, stage);
            }
            carried_out = carried_out.and_then(|()| Ok(site.seal(&applying.log)?));
        }
        for (change, reason) in &self.left {
            applying.refuse(*change, reason.clone());
        }
        let refused = applying.refused.iter().filter(|refusal| is_lasting(refusal)).cloned().collect();
        let carried_out = carried_out.and_then(|()| applying.mark(Some(refused)));
        if let Err(error) = carried_out {
            let is_ours = |plan_id: &str, entry: &Entry| {
                (self.is_resumed && plan_of(&entry.plan) == plan_id)
                    || !before.contains(&(entry.plan.clone(), entry.step.clone()))
            };
            return Err(applying.take_back(&error, is_ours));
        }
        Ok(applying.finish(tell))
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
    files.iter().map(|file| Ok(log.step(file.target(), file.new.clone())?)).collect()
}
