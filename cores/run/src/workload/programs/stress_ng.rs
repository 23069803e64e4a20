//! Stressors of stress-ng.

use super::{
    super::{Kind, Workload, error::WorkloadError, team::Outcome},
    Program, Task, installed,
    start::start,
};
use lowlat_workload::programs;
use std::{process::Command, sync::atomic::AtomicBool, time::Duration};

pub const SEM: Workload = Workload {
    name: "stress-ng-sem",
    about: "stress-ng --sem: POSIX semaphores",
    unit: "bogo operations",
    kind: Kind::Program(&Stressor("sem")),
};
pub const SEM_SYSV: Workload = Workload {
    name: "stress-ng-sem-sysv",
    about: "stress-ng --sem-sysv: System V semaphores",
    unit: "bogo operations",
    kind: Kind::Program(&Stressor("sem-sysv")),
};
pub const MSG: Workload = Workload {
    name: "stress-ng-msg",
    about: "stress-ng --msg: System V messages",
    unit: "bogo operations",
    kind: Kind::Program(&Stressor("msg")),
};

const PACKAGE: &str = "package stress-ng";

struct Stressor(&'static str);

impl Program for Stressor {
    fn why_not(&self) -> Option<String> {
        installed("stress-ng", PACKAGE).err()
    }

    fn run(&self, task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError> {
        let program = installed("stress-ng", PACKAGE).map_err(WorkloadError::Program)?;
        let mut command = Command::new(program);
        command.arg(format!("--{}", self.0)).arg(task.copies.to_string());
        command.arg("--timeout").arg(task.seconds.to_string()).arg("--metrics-brief");
        let expected = Duration::from_secs(task.seconds.into());
        let Some(text) = start(&mut command, task)?.finish("stress-ng", expected, stop)? else {
            return Ok(None);
        };
        let figures = programs::stress_ng(&text, self.0).map_err(WorkloadError::Program)?;
        let elapsed_ns = u64::try_from(expected.as_nanos()).unwrap_or(u64::MAX);
        Ok(Some(Outcome { figures, elapsed_ns }))
    }
}
