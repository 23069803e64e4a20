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

mod error;
mod instance;
mod pipe;
mod place;
mod senders;
mod start;
mod symbols;
#[cfg(test)]
mod tests;

pub use error::TraceError;
pub use instance::remove_own;
pub use instance::{Leftover, remove_leftovers};
pub use pipe::{CpuPipe, Drained, PipeStats};
pub use place::Tracefs;
pub use senders::SendTracing;
pub use start::{BUFFER_KB_MIN, Recording, TraceOptions, Tracing};
pub use symbols::{FunctionNames, function_names};

use lowlat_trace::TraceFile;
use std::{collections::BTreeMap, fs::File, io::Read as _};
use symbols::SYMBOLS_BYTES_MAX;

/// Reads the content of a trace.dat besides its sub-buffers from the kernel, for a trace and for one of what other CPUs
/// send. The caller adds threads and sub-buffers.
pub fn trace_file(tracing: &Tracing, senders: Option<&SendTracing>, hz: u64) -> TraceFile {
    let text = |path: &str| tracing.recording.instance.tracefs.text(path).unwrap_or_default() + "\n";
    let own = tracing.formats.present.iter().map(|event| event.path());
    let sent = senders.iter().flat_map(|of| &of.formats.present).map(|event| event.path.to_owned());
    let mut kallsyms = String::new();
    let read = |file: File| file.take(SYMBOLS_BYTES_MAX).read_to_string(&mut kallsyms);
    // Without names, the addresses of functions are shown.
    let _ = File::open("/proc/kallsyms").and_then(read);
    // The kernel shows zeros to those who may not see its addresses.
    if kallsyms.lines().all(|line| line.trim_start_matches('0').starts_with(' ')) {
        kallsyms.clear();
    }
    TraceFile {
        page_bytes: tracing.recording.page_bytes,
        headers: ["header_page", "header_event"].map(|name| text(&format!("events/{name}"))),
        formats: own.chain(sent).map(|path| (path.clone(), text(&format!("events/{path}/format")))).collect(),
        kallsyms,
        printk_formats: text("printk_formats"),
        threads: String::new(),
        clock: (tracing.clock, hz),
        pages: BTreeMap::new(),
        senders: BTreeMap::new(),
    }
}
