//! Wake-ups over eventfd.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob};
use rustix::{
    event::{EventfdFlags, eventfd},
    io::{read, retry_on_intr, write},
};
use std::{io, os::fd::OwnedFd};

pub const WORKLOAD: Workload = Workload {
    name: "eventfd",
    about: "two processes wake each other through two eventfds",
    unit: "round trips",
    kind: Kind::Processes { per_copy: 2, make },
};

fn make(scale: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    // There and back.
    let event = || eventfd(0, EventfdFlags::CLOEXEC);
    let pairs: rustix::io::Result<Vec<_>> = (0..scale.copies).map(|_| Ok([event()?, event()?])).collect();
    let pairs = pairs.map_err(io::Error::from).map_err(WorkloadError::cannot("make eventfds"))?;
    Ok(Box::new(move |copy, is_counted, pace| {
        let Some([there, back]) = pairs.get(copy) else { return Ok(()) };
        if is_counted {
            pace.count(|| wake(there).and_then(|()| wait(back)))
        } else {
            pace.serve(|| wait(there).and_then(|()| wake(back)))
        }
    }))
}

fn wake(event: &OwnedFd) -> io::Result<()> {
    write(event, &1_u64.to_ne_bytes())?;
    Ok(())
}

fn wait(event: &OwnedFd) -> io::Result<()> {
    retry_on_intr(|| read(event, &mut [0; 8]))?;
    Ok(())
}
