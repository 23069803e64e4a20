//! Stressors of stress-ng.

use super::{
    super::{Kind, Workload, WorkloadError, team::Outcome},
    Task, path,
    start::start,
};
use lowlat_workload::programs;
use std::{process::Command, sync::atomic::AtomicBool};

pub const SEM: Workload = Workload {
    name: "stress-ng-sem",
    about: "stress-ng --sem: POSIX semaphores",
    unit: "bogo operations",
    kind: Kind::Program { needs: NEEDS, run: |task, stop| run("sem", task, stop) },
};
pub const SEM_SYSV: Workload = Workload {
    name: "stress-ng-sem-sysv",
    about: "stress-ng --sem-sysv: System V semaphores",
    unit: "bogo operations",
    kind: Kind::Program { needs: NEEDS, run: |task, stop| run("sem-sysv", task, stop) },
};
pub const MSG: Workload = Workload {
    name: "stress-ng-msg",
    about: "stress-ng --msg: System V messages",
    unit: "bogo operations",
    kind: Kind::Program { needs: NEEDS, run: |task, stop| run("msg", task, stop) },
};

const NEEDS: &[(&str, &str)] = &[("stress-ng", "package stress-ng")];

fn run(stressor: &str, task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError> {
    let mut command = Command::new(path("stress-ng")?);
    command.arg(format!("--{stressor}")).arg(task.copies.to_string());
    command.arg("--timeout").arg(task.seconds.to_string()).arg("--metrics-brief");
    let Some(text) = start(&mut command, task)?.finish("stress-ng", stop)? else { return Ok(None) };
    Ok(Some(task.outcome(programs::stress_ng(&text, stressor).map_err(WorkloadError)?)))
}
