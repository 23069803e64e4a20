//! Runs of real processes.

use super::{beside, room, service::RunNotifier};
use anyhow::Context;
use lowlat_host_run::{Root, control_group::Throttled};
use lowlat_node::{Refusal, address::RunFolder};
use lowlat_pipeline::{
    PipelineOptions, PipelineParameters, PipelineRecord, PipelineRequest,
    check::{RoomFacts, came_beside},
};
use lowlat_trade::{
    master::Program,
    run::{self, Progress, Runner},
};
use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

/// Other pipelines that a record lists.
const BESIDE_MAX: usize = 100;

/// Runs of real processes: the `lowlat` binary, once per process.
pub struct ProcessRunner {
    program: PathBuf,
    options: PipelineOptions,
    /// Strategies of the user.
    pub own: Vec<Program>,
    /// What started this process as a service.
    pub manager: Option<RunNotifier>,
    stop: Arc<AtomicBool>,
    /// Other pipelines that already ran before this one; the room facts report those.
    beside: BTreeSet<String>,
}

/// A runner of real processes on this host, and the host's facts.
pub fn with_options(
    options: &PipelineOptions,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(ProcessRunner, RoomFacts)> {
    let folder = options.name.as_deref().map(RunFolder::named).transpose()?;
    let program = std::env::current_exe()
        .context("cannot find lowlat's own executable\nhint: check that /proc is mounted")?;
    let facts = room::read(&Root::live(), folder.as_ref());
    let beside = facts.other_runs.known().into_iter().flatten().cloned().collect();
    let (own, stop) = (Vec::new(), Arc::clone(stop));
    Ok((ProcessRunner { program, options: options.clone(), own, manager: None, stop, beside }, facts))
}

impl Runner for ProcessRunner {
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<PipelineRecord, Refusal> {
        let mut came = BTreeSet::new();
        let mut tell = |now: &Progress| {
            // About once a second, in the master, which is not on the path of any record.
            let room = BESIDE_MAX.saturating_sub(came.len());
            came.extend(beside::other_runs(&Root::live()).into_known().into_iter().flatten().take(room));
            self.manager.iter_mut().for_each(|manager| manager.notify(now));
            progress(now);
        };
        let throttled = Throttled::read(&Root::live());
        let request = PipelineRequest { parameters: parameters.clone(), options: self.options.clone() };
        let programs = run::plan::programs(&request, &self.program, &self.own);
        let mut record = run::run(parameters, programs, &self.options, &mut tell, &self.stop)?;
        record.runs_beside = came.difference(&self.beside).cloned().collect();
        record.warnings.extend(came_beside(&record));
        let ns = throttled.elapsed_ns(&Root::live()).into_known().filter(|ns| *ns > 0);
        record.warnings.extend(ns.map(|ns| format!("A quota of CPU time stopped processes for {:.2} s in all (throttled time in cpu.stat of their control group): latencies contain that.", ns as f64 / 1e9)));
        Ok(record)
    }
}
