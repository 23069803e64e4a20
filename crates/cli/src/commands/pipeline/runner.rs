//! What makes runs: the commands know this trait only.

use super::room;
use lowlat_model::pipeline::check::RoomFacts;
use lowlat_model::pipeline::{PipelineParameters, PipelineRecord, Stages};
use lowlat_sys::Root;
use std::sync::{Arc, atomic::AtomicBool};

/// A run so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunProgress {
    /// How long quotes have been published, seconds; none before the first.
    pub elapsed_s: Option<f64>,
    /// Quotes published.
    pub ticks: u64,
    /// Orders that td read.
    pub orders: u64,
    /// Records lost.
    pub lost: u64,
    /// Latencies so far.
    pub stages: Option<Stages>,
}

/// Makes runs, one after the other.
pub trait Runner {
    /// Makes one. When the user stops it, what was measured until then is given back.
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&RunProgress),
    ) -> anyhow::Result<PipelineRecord>;
}

/// Runs of real processes.
pub struct Processes {
    _stop: Arc<AtomicBool>,
}

/// What makes real runs on this host, and what the host offers to them.
pub fn real(stop: &Arc<AtomicBool>) -> anyhow::Result<(Processes, RoomFacts)> {
    let facts = room::read(&Root::live(), None);
    Ok((Processes { _stop: Arc::clone(stop) }, facts))
}

impl Runner for Processes {
    fn run(
        &mut self,
        _: &PipelineParameters,
        _: &mut dyn FnMut(&RunProgress),
    ) -> anyhow::Result<PipelineRecord> {
        anyhow::bail!("this build of lowlat has no processes to run; use a later one")
    }
}

#[cfg(test)]
pub mod fake {
    use super::*;
    use lowlat_model::pipeline::made_up;
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    /// Makes runs up.
    #[derive(Debug, Default)]
    pub struct Fake {
        /// What was asked for.
        pub asked: Vec<PipelineParameters>,
        /// Raises the flag after so many runs.
        pub stops_after: Option<(usize, Arc<AtomicBool>)>,
        /// The run that fails.
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
                lost: 0,
                stages: Some(record.stages.clone()),
            });
            Ok(record)
        }
    }
}
