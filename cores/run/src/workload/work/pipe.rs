//! Context switches over pipes, as in UnixBench's context1.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob};
use rustix::{
    io::{read, retry_on_intr, write},
    pipe::{PipeFlags, pipe_with},
};
use std::io;

pub const WORKLOAD: Workload = Workload {
    name: "pipe",
    about: "two processes pass a counter to each other through two pipes, as UnixBench's context1",
    unit: "round trips",
    kind: Kind::Processes { per_copy: 2, make },
};

fn make(scale: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    // There and back, each with its reading and its writing end.
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let pairs: rustix::io::Result<Vec<_>> = (0..scale.copies).map(|_| Ok([pipe()?, pipe()?])).collect();
    let pairs = pairs.map_err(io::Error::from).map_err(WorkloadError::cannot("make pipes"))?;
    Ok(Box::new(move |copy, is_counted, pace| {
        let Some([there, back]) = pairs.get(copy) else { return Ok(()) };
        let mut counter = 0_u64.to_ne_bytes();
        if !is_counted {
            return pace.serve(|| {
                pass(|| read(&there.0, &mut counter))?;
                pass(|| write(&back.1, &counter))
            });
        }
        let mut number = 0_u64;
        pace.count(|| {
            pass(|| write(&there.1, &number.to_ne_bytes()))?;
            pass(|| read(&back.0, &mut counter))?;
            if u64::from_ne_bytes(counter) != number {
                return Err(io::Error::from_raw_os_error(libc::EPROTO));
            }
            number += 1;
            Ok(())
        })
    }))
}

/// Passes a counter whole: pipes do not split so few bytes.
fn pass(call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    if retry_on_intr(call)? == 8 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPIPE)) }
}
