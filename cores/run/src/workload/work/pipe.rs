//! Context switches over pipes, as in UnixBench's context1.

use crate::workload::{Kind, Pace, Scale, Workload, WorkloadError, WorkloadJob};
use rustix::{
    io::{read, retry_on_intr, write},
    pipe::{PipeFlags, pipe_with},
};
use std::{io, os::fd::OwnedFd};

pub const WORKLOAD: Workload = Workload {
    name: "pipe",
    about: "two processes pass a counter to each other through two pipes, as UnixBench's context1",
    unit: "round trips",
    kind: Kind::Processes { per_copy: 2, make },
};

/// Pipes there and back, each with its reading and its writing end.
struct Pipes(Vec<[(OwnedFd, OwnedFd); 2]>);

fn make(scale: Scale<'_>) -> Result<Box<dyn WorkloadJob>, WorkloadError> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let pairs: rustix::io::Result<Vec<_>> = (0..scale.copies).map(|_| Ok([pipe()?, pipe()?])).collect();
    Ok(Box::new(Pipes(pairs.map_err(io::Error::from).map_err(WorkloadError::cannot("make pipes"))?)))
}

impl WorkloadJob for Pipes {
    fn work(&self, copy: usize, is_counted: bool, pace: &mut Pace<'_>) -> io::Result<()> {
        let Some([there, back]) = self.0.get(copy) else { return Ok(()) };
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
    }
}

/// Passes a counter whole: pipes do not split so few bytes.
fn pass(call: impl FnMut() -> rustix::io::Result<usize>) -> io::Result<()> {
    if retry_on_intr(call)? == 8 { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPIPE)) }
}
