//! The kernel's trace of chosen CPUs, through a separate instance of tracefs (kernel doc:
//! Documentation/trace/ftrace.rst, "Instances"). The host's own trace is never changed.
//!
//! Creating, starting and removing an instance disturbs every CPU: buffers are resized by work on each CPU,
//! and tracepoints are switched by rewriting the kernel's code. So all of this happens before samplers start
//! and after they have stopped. In between, [`Recording::set_on`] and [`CpuPipe::drain`] affect only the CPU
//! they run on.
#![allow(
    clippy::disallowed_methods,
    reason = "tracing is started by writing to tracefs, which Root only reads"
)]

mod dat;
mod error;
mod files;
mod instance;
mod leftovers;
mod others;
mod pipe;
mod place;
mod senders;
mod start;
mod symbols;
#[cfg(test)]
mod tests;

pub use dat::trace_file;
pub use error::TraceError;
pub use instance::remove_own;
pub use leftovers::{Leftover, remove_leftovers};
pub use pipe::{CpuPipe, Drained, PipeStats};
pub use place::Tracefs;
pub use senders::SendTracing;
pub use start::{BUFFER_KB_MIN, Recording, TraceOptions, Tracing};
pub use symbols::{FunctionNames, function_names};
