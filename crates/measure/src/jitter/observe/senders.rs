//! Reads what all CPUs send to the measured ones.

use super::{setup::memory_kb_max, trace_clock::trace_clock_for};
use crate::clock::CounterKind;
use lowlat_host::{CpuId, CpuSet};
use lowlat_jitter::{
    Sender, Warning,
    attribution::{Note, SenderBook, SenderNames},
};
use lowlat_sys::{
    Root,
    tracefs::{CpuPipe, SendTracing, TraceOptions, Tracefs},
};
use lowlat_trace::{SendCursor, SendDecoder, TickMap, TraceNames};
use std::{collections::BTreeSet, sync::Arc};

/// Buffer of each CPU: some 700 interrupts with their stacks, so 30,000 a second if it is read every 25 ms.
const BUFFER_KB: u64 = 256;
/// Sub-buffers of one CPU read per round; the rest waits.
const PAGES_PER_ROUND: u32 = 256;

/// A trace of senders that is ready to start.
#[derive(Debug)]
pub struct SendSetup {
    tracing: SendTracing,
    pipes: Vec<CpuPipe>,
}

impl SendSetup {
    /// Prepares it for what is sent to these CPUs. `is_alone`: nothing else traces on this host.
    ///
    /// # Errors
    /// A sentence that says why senders are not known.
    pub fn start(root: &Root, measured: &CpuSet, kind: CounterKind, is_alone: bool) -> Result<Self, String> {
        let online = root.read_cpu_list("/sys/devices/system/cpu/online").into_known();
        let cpus = online.unwrap_or_else(|| measured.clone());
        let tracefs = Arc::new(Tracefs::find().map_err(|error| error.to_string())?);
        let options = TraceOptions {
            buffer_kb_per_cpu: BUFFER_KB,
            memory_kb_max: memory_kb_max(root, &cpus),
            clock: trace_clock_for(kind),
            cpus,
        };
        let tracing = SendTracing::start(&tracefs, &options, measured, is_alone)
            .map_err(|error| error.to_string())?
            .ok_or(
                "this kernel does not trace who sends interrupts to other CPUs, which Linux 6.4 and later do",
            )?;
        let pipes = tracing.pipes().map_err(|error| error.to_string())?;
        Ok(Self { tracing, pipes })
    }
}

/// The trace of senders during a run.
#[derive(Debug)]
pub struct SenderReader {
    root: Root,
    tracing: SendTracing,
    senders: Vec<(CpuPipe, SendCursor)>,
    decoder: SendDecoder,
    book: SenderBook,
}

impl SenderReader {
    /// Reads a trace, with recording still off.
    pub fn new(setup: SendSetup, clock: TickMap, measured: &CpuSet) -> Self {
        Self {
            root: Root::live(),
            decoder: setup.tracing.decoder(clock),
            book: SenderBook::new(measured),
            senders: setup.pipes.into_iter().map(|pipe| (pipe, SendCursor::default())).collect(),
            tracing: setup.tracing,
        }
    }

    /// Starts recording.
    pub fn start(&self) -> Option<Warning> {
        self.tracing.set_on(true).err().map(|error| Warning::TraceNotOn { error: error.to_string() })
    }

    /// Stops recording.
    pub fn stop(&self) {
        // An instance that was removed meanwhile records nothing any more.
        let _ = self.tracing.set_on(false);
    }

    /// Uses another map for later stamps.
    pub fn set_clock(&mut self, map: TickMap) {
        self.decoder.set_clock(map);
    }

    /// Reads all CPUs, and passes on what they sent to measured ones. A CPU that cannot be read any more is left
    /// out from then on.
    pub fn read(&mut self, problems: &mut Vec<Warning>, mut out: impl FnMut(CpuId, Note)) {
        let (decoder, book) = (&mut self.decoder, &mut self.book);
        self.senders.retain_mut(|(pipe, cursor)| {
            let (cpu, mut page_count) = (pipe.cpu(), 0);
            let answer = pipe.drain_raw(|bytes| {
                decoder.page(cpu, cursor, bytes, |send| book.take(cpu, send, &mut out));
                page_count += 1;
                page_count < PAGES_PER_ROUND
            });
            book.end(cpu, &mut out);
            let problem = answer.err().map(|error| Warning::TraceBroken { cpu, error: error.to_string() });
            let is_whole = problem.is_none();
            if !is_whole {
                book.stop(&mut out);
            }
            problems.extend(problem);
            is_whole
        });
        let root = &self.root;
        self.book.name_threads(|thread| names_of(root, thread));
    }

    /// Addresses in the kernel that need names.
    pub fn addresses(&self) -> BTreeSet<u64> {
        self.book.addresses()
    }

    /// The senders, and the place of each that was noted. Removes the trace.
    pub fn finish(
        self,
        names: &TraceNames,
        own_tids: &BTreeSet<i32>,
        notes: &mut Vec<Warning>,
    ) -> (Vec<Sender>, Vec<usize>) {
        let found = self.book.finish(&SenderNames { names, own_tids });
        let count = self.book.full_count();
        if count > 0 {
            notes.push(Warning::SendersTooMany { count });
        }
        let count = self.book.lost_count();
        if count > 0 {
            notes.push(Warning::SendersMissed { count });
        }
        drop(self.senders);
        if let Err(error) = self.tracing.finish() {
            notes.push(Warning::TraceNotRemoved { error: error.to_string() });
        }
        found
    }
}

/// A thread's name, and its process's if that differs; `None` if it has ended.
fn names_of(root: &Root, thread: i32) -> Option<(String, String)> {
    let name_of = |thread: &str| {
        let name = root.read(&format!("/proc/{thread}/comm")).into_known()?;
        Some(name.trim_end().to_owned())
    };
    let name = name_of(&thread.to_string())?;
    let status = root.read(&format!("/proc/{thread}/status")).into_known().unwrap_or_default();
    let process =
        status.lines().find_map(|line| line.strip_prefix("Tgid:")).and_then(|id| name_of(id.trim()));
    let process = process.filter(|process| *process != name).unwrap_or_default();
    Some((name, process))
}
