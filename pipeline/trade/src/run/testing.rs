//! Runs without processes, for tests.

use super::{Phase, Progress, Runner};
use lowlat_node::Refusal;
use lowlat_pipeline::{PipelineParameters, PipelineRecord, testing};
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
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<PipelineRecord, Refusal> {
        self.asked.push(parameters.clone());
        if self.fails_at == Some(self.asked.len()) {
            return Err(Refusal::new("process md ended: it did not start"));
        }
        if let Some((runs, stop)) = &self.stops_after
            && self.asked.len() >= *runs
        {
            stop.store(true, Ordering::Relaxed);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand ticks")]
        let ticks = (parameters.rate_per_s * parameters.duration_s).max(1.0) as u64;
        let record = testing::run_of(parameters.clone(), ticks.min(5_000), 40_000);
        progress(&Progress {
            phase: Phase::Publishing,
            joined: 0,
            processes: 0,
            elapsed_s: parameters.duration_s,
            ticks_published: record.ticks_published,
            orders: record.orders,
            lost: 0,
            t2o_p50_ns: record.stages.t2o.p50_ns,
        });
        Ok(record)
    }
}
