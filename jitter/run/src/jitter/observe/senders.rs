//! Reads what all CPUs send to the measured ones.

use super::{setup::memory_kb_max, trace_clock::trace_clock_for, trace_reader::if_any};
use crate::clock::CounterKind;
use crate::tracefs::{CpuPipe, SendTracing, TraceOptions, Tracefs, function_names};
use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::Root;
use lowlat_jitter::{
    Sender, Warning,
    attribution::{Hit, Note, SenderBook, SenderNames},
};
use lowlat_trace::{SendCursor, SendDecoder, SendStep, TickMap, TraceNames};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Buffer of each CPU: some 700 interrupts with their stacks, so 30,000 a second if it is read every 25 ms.
const BUFFER_KB: u64 = 256;
/// Start of the name of the function in which a tracepoint is written.
const TRACEPOINT: &str = "trace_event_raw_event_";
/// Sub-buffers of one CPU read per round; the rest waits.
const PAGES_PER_ROUND: u32 = 256;

/// Reason why senders are unknown on an older kernel.
pub const NO_SENDS: &str =
    "this kernel does not trace who sends interrupts to other CPUs, which Linux 6.4 and later do";

/// A trace of senders that is ready to start.
#[derive(Debug)]
pub struct SendSetup {
    pub tracing: SendTracing,
    pub pipes: Vec<CpuPipe>,
}

impl SendSetup {
    /// Prepares it for what is sent to these CPUs and, `with_wakes`, for the wakers of threads there. `is_alone`:
    /// nothing else traces on this host.
    ///
    /// # Errors
    /// A sentence that says why senders are not known.
    pub fn start(
        root: &Root,
        measured: &CpuSet,
        kind: CounterKind,
        is_alone: bool,
        with_wakes: bool,
    ) -> Result<Self, String> {
        let online = root.read_cpu_list("/sys/devices/system/cpu/online").into_known();
        let cpus = online.unwrap_or_else(|| measured.clone());
        let tracefs = Arc::new(Tracefs::find().map_err(|error| error.to_string())?);
        let options = TraceOptions {
            buffer_kb_per_cpu: BUFFER_KB,
            memory_kb_max: memory_kb_max(root, &cpus),
            clock: trace_clock_for(kind),
            cpus,
        };
        let tracing = SendTracing::start(&tracefs, &options, measured, is_alone, with_wakes)
            .map_err(|error| error.to_string())?
            .ok_or(NO_SENDS)?;
        let pipes = tracing.recording.pipes().map_err(|error| error.to_string())?;
        Ok(Self { tracing, pipes })
    }
}

/// Waker of a thread: time since the start of the interruption (in ticks, or in nanoseconds), sender, and whether the
/// kernel's functions have names.
pub type Waker = (i64, Sender, Reading<()>);

/// The trace of senders during a run.
#[derive(Debug)]
pub struct SenderReader {
    root: Root,
    pub tracing: SendTracing,
    pub senders: Vec<(CpuPipe, SendCursor)>,
    pub decoder: SendDecoder,
    pub book: SenderBook,
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

    pub fn start(&self) -> Option<Warning> {
        self.tracing
            .recording
            .set_on(true)
            .err()
            .map(|error| Warning::TraceNotOn { error: error.to_string() })
    }

    pub fn stop(&self) {
        // An instance that was removed meanwhile records nothing any more.
        let _ = self.tracing.recording.set_on(false);
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

    /// The names of the threads in the trace that was kept, as far as they still exist.
    pub fn threads(&self) -> BTreeMap<i32, String> {
        let (mut decoder, mut threads) = (self.tracing.decoder(TickMap::identity(1)), BTreeMap::new());
        for (pipe, _) in &self.senders {
            for page in pipe.kept().chunks(pipe.page_bytes()) {
                decoder.page(pipe.cpu(), &mut SendCursor::default(), page, |send| {
                    threads.entry(send.thread).or_insert_with(|| names_of(&self.root, send.thread));
                });
            }
        }
        threads.into_iter().filter_map(|(thread, name)| Some((thread, name?.0))).collect()
    }

    /// Returns the last waker of a thread before the end of an interruption, as far as the trace was kept.
    pub fn waker(
        &mut self,
        thread: i32,
        hit: &Hit,
        known: &TraceNames,
        own_tids: &BTreeSet<i32>,
    ) -> Option<Waker> {
        let (mut last, mut stack) = (None, Vec::new());
        for (pipe, _) in &self.senders {
            let (pages, mut cursor, mut is_next) = (pipe.kept(), SendCursor::default(), false);
            for page in pages.chunks(pipe.page_bytes()) {
                self.decoder.page(pipe.cpu(), &mut cursor, page, |send| {
                    let by = (pipe.cpu(), send.thread, send.level);
                    match send.step {
                        SendStep::Wakes(woken) => {
                            let earlier = last.map_or(0, |(ticks, _)| ticks);
                            is_next = woken == thread && (earlier..=hit.now).contains(&send.ticks);
                            if is_next {
                                (last, stack) = (Some((send.ticks, by)), Vec::new());
                            }
                        }
                        SendStep::Stack(frames) if is_next && last.is_some_and(|(_, of)| of == by) => {
                            (is_next, stack) = (false, frames.iter().collect());
                        }
                        _ => {}
                    }
                });
            }
        }
        let (ticks, (cpu, by, level)) = last?;
        let mut book = SenderBook::new(&CpuSet::new());
        book.note_stack(cpu, by, level, stack.into_iter());
        let of_trace = |by: i32| Some((known.threads.get(&by)?.comm.clone(), String::new()));
        book.name_threads(|by| names_of(&self.root, by).or_else(|| of_trace(by)));
        let (mut names, mut symbols) = (TraceNames::default(), Reading::Known(()));
        match function_names(&book.addresses()) {
            Ok(functions) if functions.is_hidden => symbols = Reading::Denied,
            Ok(functions) => functions.add_to(&mut names),
            Err(error) => symbols = Reading::unparsable("/proc/kallsyms", &error.to_string(), "functions"),
        }
        let mut sender = book.finish(&SenderNames { names: &names, own_tids }).0.pop()?;
        sender.path.retain(|function| !function.starts_with(TRACEPOINT));
        Some((ticks.wrapping_sub(hit.before).cast_signed(), sender, symbols))
    }

    /// The senders, and the place of each that was noted. Removes the trace.
    pub fn finish(
        self,
        names: &TraceNames,
        own_tids: &BTreeSet<i32>,
        notes: &mut Vec<Warning>,
    ) -> (Vec<Sender>, Vec<usize>) {
        let found = self.book.finish(&SenderNames { names, own_tids });
        notes.extend(if_any(self.book.full_count(), |count| Warning::SendersTooMany { count }));
        notes.extend(if_any(self.book.lost_count, |count| Warning::SendersMissed { count }));
        drop(self.senders);
        let left = self.tracing.recording.finish().err();
        notes.extend(left.map(|error| Warning::TraceNotRemoved { error: error.to_string() }));
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
