//! Tests of UnixBench.

use super::{
    super::{Kind, Workload, WorkloadError, team::Outcome},
    Task, path,
    start::start,
};
use lowlat_workload::programs::{self, Figures};
use std::{process::Command, sync::atomic::AtomicBool};

pub const CONTEXT1: Workload = Workload {
    name: "unixbench-context1",
    about: "UnixBench's context1: context switches over pipes",
    unit: "round trips",
    kind: Kind::Program { needs: &[("context1", "UnixBench; add its folder pgms to PATH")], run },
};

fn run(task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError> {
    let program = path("context1")?;
    // UnixBench runs copies of the whole program.
    let start_one = |_| start(Command::new(&program).arg(task.seconds.to_string()), task);
    let started: Result<Vec<_>, _> = (0..task.copies).map(start_one).collect();
    let mut all = Figures::default();
    for running in started? {
        let Some(text) = running.finish("context1", stop)? else { return Ok(None) };
        let figures = programs::unixbench(&text, task.seconds.into()).map_err(WorkloadError)?;
        all.operations += figures.operations;
        all.per_s += figures.per_s;
    }
    Ok(Some(task.outcome(all)))
}
