//! Tests of UnixBench.

use super::{
    super::{Kind, Workload, error::WorkloadError, team::Outcome},
    Program, Task, installed,
    start::start,
};
use lowlat_workload::programs::{self, Figures};
use std::{process::Command, sync::atomic::AtomicBool, time::Duration};

pub const CONTEXT1: Workload = Workload {
    name: "unixbench-context1",
    about: "UnixBench's context1: context switches over pipes",
    unit: "round trips",
    kind: Kind::Program(&Context1),
};

/// Origin of the program, for the message that it is missing.
const SOURCE: &str = "UnixBench; add its folder pgms to PATH";

struct Context1;

impl Program for Context1 {
    fn why_not(&self) -> Option<String> {
        installed("context1", SOURCE).err()
    }

    fn run(&self, task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError> {
        let program = installed("context1", SOURCE).map_err(WorkloadError::Program)?;
        let expected = Duration::from_secs(task.seconds.into());
        // UnixBench runs copies of the whole program.
        let started: Result<Vec<_>, _> = (0..task.copies)
            .map(|_| start(Command::new(&program).arg(task.seconds.to_string()), task))
            .collect();
        let mut all = Figures::default();
        for running in started? {
            let Some(text) = running.finish("context1", expected, stop)? else { return Ok(None) };
            let figures =
                programs::unixbench(&text, expected.as_secs_f64()).map_err(WorkloadError::Program)?;
            all.operations += figures.operations;
            all.per_s += figures.per_s;
        }
        let elapsed_ns = u64::try_from(expected.as_nanos()).unwrap_or(u64::MAX);
        Ok(Some(Outcome { figures: all, elapsed_ns }))
    }
}
