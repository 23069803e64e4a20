//! Content of a trace.dat besides its sub-buffers.

use super::{SendTracing, Tracing, symbols::SYMBOLS_BYTES_MAX};
use lowlat_trace::TraceFile;
use std::{collections::BTreeMap, fs::File, io::Read as _};

/// Reads it from the kernel, for a trace and for one of what other CPUs send. The caller adds threads and sub-buffers.
pub fn trace_file(tracing: &Tracing, senders: Option<&SendTracing>, hz: u64) -> TraceFile {
    let text = |path: &str| tracing.instance.tracefs().text(path).unwrap_or_default() + "\n";
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
        page_bytes: tracing.page_bytes,
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
