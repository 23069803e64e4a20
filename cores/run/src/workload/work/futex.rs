//! Wake-ups over a futex.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob, shared::Shared};
use rustix::{
    io::Errno,
    thread::futex::{Flags, wait, wake},
};
use std::sync::atomic::{AtomicU32, Ordering};

pub const WORKLOAD: Workload = Workload {
    name: "futex",
    about: "two processes wake each other through a futex in shared memory",
    unit: "round trips",
    kind: Kind::Processes { per_copy: 2, make },
};

/// Process whose turn it is, on a pair of cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Turn(AtomicU32);

fn make(scale: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    let turns =
        Shared::new(scale.copies, Turn::default).map_err(WorkloadError::cannot("make shared memory"))?;
    Ok(Box::new(move |copy, is_counted, pace| {
        let Some(Turn(turn)) = turns.get(copy) else { return Ok(()) };
        let (own, other) = if is_counted { (0, 1) } else { (1, 0) };
        pace.begin();
        loop {
            // Acquire: pairs with the release of the other process.
            while turn.load(Ordering::Acquire) != own {
                match wait(turn, Flags::empty(), other, None) {
                    Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if own == 0 && !pace.goes_on() {
                return Ok(());
            }
            // Release: pairs with the acquire of the other process.
            turn.store(other, Ordering::Release);
            wake(turn, Flags::empty(), 1)?;
        }
    }))
}
