//! Settings that `lowlat run` applies before it starts a command: CPUs, scheduling, memory, network acceleration.
//!
//! [`Launch::plan`] checks a [`Request`] against a host and returns what to set. Applying it is the job of
//! `lowlat-host-run`. Pure: no I/O, no clock.

#![forbid(unsafe_code)]
#![deny(clippy::disallowed_methods)]

mod accelerator;
mod choose;
mod evidence;
mod launch;
mod placement;
mod scope;
mod shell;
#[cfg(test)]
mod testing;
mod threads;

pub use accelerator::{Accelerator, other_wait, tested_variables};
pub use evidence::{
    Acceleration, DumpedSocket, KernelSocket, Library, OnloadSocket, ProcessEvidence, Proof, SocketEnds,
    dumped_sockets,
};
pub use launch::{CpuChoice, MemoryPolicy, Mode, Request};
pub use launch::{Launch, Refusal, Surroundings};
pub use placement::{Place, order};
pub use scope::SocketScope;
pub use shell::shell_lines;
pub use threads::{Pins, Thread, ThreadMap, Update};
