//! System V semaphores.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob, removal::Removal, work::done};
use std::io;

pub const WORKLOAD: Workload = Workload {
    name: "sem-sysv",
    about: "processes take and give one System V semaphore",
    unit: "operations",
    kind: Kind::Processes { per_copy: 1, make },
};

const MODE: i32 = 0o600;

struct SystemV(Removal);

fn make(_: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    let error = WorkloadError::cannot("make a System V semaphore");
    let create = || {
        // SAFETY: numbers only.
        let id = unsafe { libc::semget(libc::IPC_PRIVATE, 1, libc::IPC_CREAT | MODE) };
        done(id.into()).map(|()| id)
    };
    let remove = |semaphores| {
        // SAFETY: numbers only; the fourth argument is not read for IPC_RMID.
        unsafe { libc::semctl(semaphores, 0, libc::IPC_RMID) };
    };
    let job = SystemV(Removal::of(remove, 1, create).map_err(&error)?);
    job.change(1).map_err(&error)?;
    Ok(Box::new(move |_, _, pace| pace.count(|| job.change(-1).and_then(|()| job.change(1)))))
}

impl SystemV {
    fn change(&self, by: i16) -> io::Result<()> {
        let mut change = libc::sembuf { sem_num: 0, sem_op: by, sem_flg: 0 };
        // SAFETY: one operation, alive through the call.
        done(unsafe { libc::semop(self.0.id(0), &raw mut change, 1) }.into())
    }
}
