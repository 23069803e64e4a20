//! What executes runs. The commands know only this trait.

use super::{beside, room};
use anyhow::Context;
use lowlat_pipeline::{
    PipelineOptions, PipelineParameters, PipelineRecord,
    check::{RoomFacts, came_beside},
};
use lowlat_sys::Root;
use lowlat_trade::{
    address::RunFolder,
    run::{self, Phase, Progress},
};
use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

/// Progress of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunProgress {
    /// Time since the first quote, in seconds; `None` before it.
    pub elapsed_s: Option<f64>,
    /// Processes that have joined.
    pub joined: u32,
    /// Processes of the run.
    pub processes: u32,
    /// Quotes published.
    pub ticks: u64,
    /// Orders that td has read.
    pub orders: u64,
    /// Records lost.
    pub lost: u64,
    /// Median of tick to order so far.
    pub t2o_p50_ns: Option<u64>,
}

/// Executes runs, one after the other.
pub trait Runner {
    /// Executes a run. If the user interrupts it, the results so far are returned.
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&RunProgress),
    ) -> anyhow::Result<PipelineRecord>;
}

/// Runs of real processes: the `lowlat` binary, once per process.
pub struct Processes {
    program: PathBuf,
    options: PipelineOptions,
    stop: Arc<AtomicBool>,
    /// Other pipelines that already ran before this one; the room facts report those.
    beside: BTreeSet<String>,
}

/// A runner of real processes on this host, and the host's facts.
pub fn real(stop: &Arc<AtomicBool>) -> anyhow::Result<(Processes, RoomFacts)> {
    with_options(&PipelineOptions::default(), stop)
}

/// The same with options.
pub fn with_options(
    options: &PipelineOptions,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(Processes, RoomFacts)> {
    let folder = options.name.as_deref().map(RunFolder::named).transpose()?;
    let program = std::env::current_exe()
        .context("cannot find lowlat's own executable\nhint: check that /proc is mounted")?;
    let facts = room::read(&Root::live(), folder.as_ref());
    let beside = facts.other_runs.known().into_iter().flatten().cloned().collect();
    Ok((Processes { program, options: options.clone(), stop: Arc::clone(stop), beside }, facts))
}

impl Runner for Processes {
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&RunProgress),
    ) -> anyhow::Result<PipelineRecord> {
        let mut came = BTreeSet::new();
        let mut tell = |now: &Progress| {
            // About once a second, in the master, which is not on the path of any record.
            came.extend(beside::other_runs(&Root::live()).into_known().into_iter().flatten());
            let is_publishing = now.phase != Phase::Joining;
            progress(&RunProgress {
                elapsed_s: is_publishing.then_some(now.elapsed_s),
                joined: now.joined,
                processes: now.processes,
                ticks: now.ticks_published,
                orders: now.orders,
                lost: now.lost,
                t2o_p50_ns: now.t2o_p50_ns,
            });
        };
        let mut record = run::run_with(parameters, &self.options, &self.program, &mut tell, &self.stop)?;
        record.runs_beside = came.difference(&self.beside).cloned().collect();
        record.warnings.extend(came_beside(&record));
        Ok(record)
    }
}

#[cfg(test)]
pub mod fake {
    use super::*;
    use lowlat_pipeline::made_up;
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    /// Invents the results of runs.
    #[derive(Debug, Default)]
    pub struct Fake {
        /// The parameters of each run.
        pub asked: Vec<PipelineParameters>,
        /// Raises the flag after this many runs.
        pub stops_after: Option<(usize, Arc<AtomicBool>)>,
        /// The run that fails, by number.
        pub fails_at: Option<usize>,
    }

    impl Runner for Fake {
        fn run(
            &mut self,
            parameters: &PipelineParameters,
            progress: &mut dyn FnMut(&RunProgress),
        ) -> anyhow::Result<PipelineRecord> {
            self.asked.push(parameters.clone());
            if self.fails_at == Some(self.asked.len()) {
                anyhow::bail!("md did not start; look into its log");
            }
            progress(&RunProgress::default());
            if let Some((runs, stop)) = &self.stops_after
                && self.asked.len() >= *runs
            {
                stop.store(true, Ordering::Relaxed);
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a few thousand ticks"
            )]
            let ticks = (parameters.rate_per_s * parameters.duration_s).max(1.0) as u64;
            let record = made_up::run_of(parameters.clone(), ticks.min(5_000), 40_000);
            progress(&RunProgress {
                elapsed_s: Some(parameters.duration_s),
                ticks: record.ticks_published,
                orders: record.orders,
                t2o_p50_ns: record.stages.t2o.p50_ns,
                ..RunProgress::default()
            });
            Ok(record)
        }
    }
}
