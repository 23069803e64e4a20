//! Starts a trace: a separate instance, its buffers, its clock and its events.

use super::{
    CpuPipe, PipeStats, TraceError, Tracefs,
    error::WITHOUT,
    instance::other_tracers,
    instance::{Instance, SharedFile},
    place::write_whole,
};
use lowlat_host::{CpuId, CpuSet, Unparsable};
use lowlat_host_run::{Root, open_files};
use lowlat_trace::{Decoder, TickMap, TraceClock, TraceFormats};
use std::{fs::File, io, os::unix::fs::OpenOptionsExt as _, sync::Arc};

/// The smallest buffer of a traced CPU: a smaller one would overflow between two reads.
pub const BUFFER_KB_MIN: u64 = 64;
/// Initial buffer of a new instance for each CPU, before it is made smaller (kernel: TRACE_BUF_SIZE_DEFAULT;
/// `trace_buf_size=` on the command line changes it).
const BUFFER_KB_NEW: u64 = 1_408;
/// Buffer of CPUs that are not traced; the kernel rounds up to two sub-buffers.
const BUFFER_KB_UNUSED: u64 = 8;
/// Size of the host's own buffer, and of an instance's.
const BUFFER_SIZE: &str = "buffer_size_kb";
/// The largest plausible sub-buffer: 64 times a page of 64 KiB.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// Options of a trace that make records longer or more numerous. A new instance inherits those of the host's
/// own trace.
const COSTLY_OPTIONS: [&str; 7] = [
    "stacktrace",
    "userstacktrace",
    "event-fork",
    "function-fork",
    "markers",
    "copy_trace_marker",
    "pause-on-trace",
];

#[derive(Debug, Clone)]
pub struct TraceOptions {
    pub cpus: CpuSet,
    /// Buffer of each traced CPU, in KiB; less if `memory_kb_max` does not suffice.
    pub buffer_kb_per_cpu: u64,
    /// Maximum kernel memory of all buffers together, in KiB.
    pub memory_kb_max: u64,
    /// The clock that stamps events.
    pub clock: TraceClock,
}

/// A trace of chosen CPUs. It is removed when dropped; [`Recording::finish`] reports whether that succeeded.
#[derive(Debug)]
pub struct Tracing {
    pub recording: Recording,
    pub(super) formats: TraceFormats,
    /// The clock that stamps events.
    pub clock: TraceClock,
    /// The actual buffer of each traced CPU, in KiB.
    pub buffer_kb_per_cpu: u64,
    /// Other traces that were active on this host when this one started, one phrase each. Another tracer takes time on
    /// every CPU that it traces.
    pub facts: Vec<String>,
    /// Events and options that the kernel rejected, one sentence each. The trace continues without them.
    pub problems: Vec<String>,
    /// Changes that this trace made to the host's own trace, one sentence each, with how to revert them.
    pub side_effects: Vec<String>,
}

impl Tracing {
    /// Creates an instance and sets it up, with recording still off: [`Recording::set_on`].
    ///
    /// # Errors
    /// [`TraceError`]; everything created until then is removed again.
    pub fn start(tracefs: &Arc<Tracefs>, options: &TraceOptions) -> Result<Self, TraceError> {
        let buffer_kb_per_cpu = buffer_kb(options)?;
        let formats = read_formats(tracefs)?;
        let facts = other_tracers(tracefs, "");
        let own_size = tracefs.text(BUFFER_SIZE);
        let recording = Recording::make(tracefs, &options.cpus)?;
        let mut problems = set_up(&recording.instance, options, buffer_kb_per_cpu, facts.is_empty())?;
        problems.extend(switch_events(&recording.instance, &formats)?);
        let sizes = own_size.ok().zip(tracefs.text(BUFFER_SIZE).ok());
        let kept = sizes.and_then(|(before, after)| kept_small(&before, &after));
        let (side_effects, clock) = (kept.into_iter().collect(), options.clock);
        Ok(Self { recording, formats, clock, buffer_kb_per_cpu, facts, problems, side_effects })
    }

    /// Switches one event, such as "sched/sched_switch", on or off. The kernel rewrites its code for this,
    /// which disturbs every CPU.
    ///
    /// # Errors
    /// [`TraceError`] if the kernel rejects it.
    pub fn set_event(&self, event: &str, is_on: bool) -> Result<(), TraceError> {
        self.recording.instance.write(&format!("events/{event}/enable"), if is_on { "1" } else { "0" })
    }

    /// Records only those occurrences of an event that match the filter (kernel doc: events.rst, "Event
    /// filtering").
    ///
    /// # Errors
    /// [`TraceError`] if the kernel rejects it.
    pub fn set_filter(&self, event: &str, filter: &str) -> Result<(), TraceError> {
        self.recording.instance.write(&format!("events/{event}/filter"), filter)
    }

    /// Creates a decoder for these buffers; `clock` converts time stamps to ticks.
    pub fn decoder(&self, clock: TickMap) -> Decoder {
        Decoder::new(&self.formats, clock)
    }

    /// The kernel's counters of a CPU's buffer.
    ///
    /// # Errors
    /// [`TraceError`] if they cannot be read.
    pub fn stats(&self, cpu: CpuId) -> Result<PipeStats, TraceError> {
        let path = self.recording.instance.within(&format!("per_cpu/cpu{cpu}/stats"));
        self.recording.instance.tracefs.read(&path).map(|text| PipeStats::parse(&text))
    }

    /// The instance's name below `instances/`.
    pub fn name(&self) -> &str {
        &self.recording.instance.name
    }
}

/// An instance that records events of chosen CPUs. It is removed when dropped.
#[derive(Debug)]
pub struct Recording {
    pub(super) instance: Arc<Instance>,
    on: SharedFile,
    cpus: CpuSet,
    pub(super) page_bytes: usize,
}

impl Recording {
    pub(super) fn make(tracefs: &Arc<Tracefs>, cpus: &CpuSet) -> Result<Self, TraceError> {
        let instance = Instance::make(tracefs)?;
        let on = instance.open("tracing_on", File::options().write(true));
        let opened = on.and_then(|on| Ok((on, page_bytes(&instance)?)));
        // The error that led here is the one to report.
        let (on, page_bytes) = opened.inspect_err(|_| drop(instance.remove()))?;
        Ok(Self { instance, on, cpus: cpus.clone(), page_bytes })
    }

    /// Starts or stops recording: one write to an open file, and one store in the kernel. The tracepoints
    /// stay switched on in either case; without recording they cost little, but not nothing.
    ///
    /// # Errors
    /// The kernel's error, or that the instance was removed.
    pub fn set_on(&self, is_on: bool) -> io::Result<()> {
        self.on.with(|file| write_whole(file, if is_on { "1" } else { "0" }))
    }

    /// Opens the buffer of each traced CPU, in order of their numbers. Only once: two readers would share the
    /// events.
    ///
    /// # Errors
    /// [`TraceError`] if a CPU has no buffer or its file cannot be opened.
    pub fn pipes(&self) -> Result<Vec<CpuPipe>, TraceError> {
        open_files::allow(self.cpus.len() as u64);
        let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC).bits().cast_signed();
        let pipe = |cpu: CpuId| {
            let file = self.instance.open(
                &format!("per_cpu/cpu{cpu}/trace_pipe_raw"),
                File::options().read(true).custom_flags(flags),
            )?;
            Ok(CpuPipe::new(cpu, file, self.page_bytes))
        };
        self.cpus.iter().map(pipe).collect()
    }

    /// Stops recording and removes the instance. Pipes that are still held return errors from then on.
    ///
    /// # Errors
    /// [`TraceError`] if it could not be removed.
    pub fn finish(&self) -> Result<(), TraceError> {
        self.instance.remove()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A remaining instance is found by `remove_own`, and by `remove_leftovers` of the next run.
        let _ = self.instance.remove();
    }
}

/// The buffer of each traced CPU within the memory limit.
pub(super) fn buffer_kb(options: &TraceOptions) -> Result<u64, TraceError> {
    let online = Root::live().read_cpu_list("/sys/devices/system/cpu/online").into_known();
    let online_count = online.map_or(1, |cpus| cpus.len() as u64).max(options.cpus.len() as u64);
    let allowed_kb = options.memory_kb_max;
    let traced_count = (options.cpus.len() as u64).max(1);
    let unused_kb = (online_count - traced_count.min(online_count)) * BUFFER_KB_UNUSED;
    let share_kb = allowed_kb.saturating_sub(unused_kb) / traced_count;
    let needed_kb = (online_count * BUFFER_KB_NEW).max(traced_count * BUFFER_KB_MIN + unused_kb);
    if allowed_kb < needed_kb {
        return Err(TraceError(format!(
            "trace buffers temporarily need {needed_kb} KiB of kernel memory, and {allowed_kb} KiB are allowed; measure \
             fewer CPUs or {WITHOUT}"
        )));
    }
    Ok(options.buffer_kb_per_cpu.clamp(BUFFER_KB_MIN, share_kb.max(BUFFER_KB_MIN)))
}

fn read_formats(tracefs: &Tracefs) -> Result<TraceFormats, TraceError> {
    let (page, event) = (tracefs.read("events/header_page")?, tracefs.read("events/header_event")?);
    let printk_formats = tracefs.text("printk_formats").unwrap_or_default();
    let format_of = |path: String| tracefs.text(&format!("events/{path}/format")).ok();
    Ok(TraceFormats::parse(&page, &event, &printk_formats, |tracepoint| format_of(tracepoint.path()))?)
}

/// Sets an instance up, in an order that keeps its memory small. Returns the optional settings that the
/// kernel rejected.
pub(super) fn set_up(
    instance: &Instance,
    options: &TraceOptions,
    buffer_kb_per_cpu: u64,
    is_alone: bool,
) -> Result<Vec<String>, TraceError> {
    instance.write("tracing_on", "0")?;
    instance.write(BUFFER_SIZE, &BUFFER_KB_UNUSED.to_string())?;
    for cpu in options.cpus.iter() {
        let directory = instance.within(&format!("per_cpu/cpu{cpu}"));
        if !instance.tracefs.exists(&directory) {
            let path = instance.tracefs.shown(&directory);
            return Err(TraceError(format!(
                "CPU {cpu} has no trace buffer at {path}; choose CPUs that are online"
            )));
        }
        instance.write(&format!("per_cpu/cpu{cpu}/buffer_size_kb"), &buffer_kb_per_cpu.to_string())?;
    }
    set_clock(instance, options.clock)?;
    instance.write("tracing_cpumask", &options.cpus.to_mask())?;
    set_options(instance, is_alone)
}

/// Switches the events on. Returns those that the kernel rejected.
fn switch_events(instance: &Instance, formats: &TraceFormats) -> Result<Vec<String>, TraceError> {
    let wanted = || formats.present.iter().filter(|tracepoint| tracepoint.is_default());
    let refusals: Vec<TraceError> = wanted()
        .filter_map(|tracepoint| instance.write(&format!("events/{}/enable", tracepoint.path()), "1").err())
        .collect();
    if refusals.len() == wanted().count() {
        let reasons =
            refusals.first().map_or_else(|| "the kernel has none of them".into(), ToString::to_string);
        return Err(TraceError::new(format!("cannot switch on any trace event: {reasons}")));
    }
    Ok(refusals.iter().map(ToString::to_string).collect())
}

fn set_clock(instance: &Instance, clock: TraceClock) -> Result<(), TraceError> {
    let path = instance.within("trace_clock");
    let offered = instance.tracefs.read(&path)?;
    if !offered.split_ascii_whitespace().any(|word| word.trim_matches(['[', ']']) == clock.name()) {
        let path = instance.tracefs.shown(&path);
        return Err(TraceError(format!(
            "{path} offers no clock {}, only: {offered}; use a kernel that has it, or --no-causes to measure without \
             causes",
            clock.name()
        )));
    }
    instance.write("trace_clock", clock.name())
}

/// Switches off expensive options, and overwriting on.
///
/// With overwriting, the kernel marks in the buffer where and how many events are missing. Without it the
/// newest are dropped, and only a total shows it, so it would be unknown which interruptions lack their
/// causes.
fn set_options(instance: &Instance, is_alone: bool) -> Result<Vec<String>, TraceError> {
    instance.write("options/overwrite", "1")?;
    let mut problems = Vec::new();
    for option in COSTLY_OPTIONS {
        let file = format!("options/{option}");
        if instance.tracefs.exists(&instance.within(&file)) {
            problems.extend(instance.write(&file, "0").err().map(|error| error.to_string()));
        }
    }
    // Recording the names of threads takes time at every switch, and sched_switch has them. The kernel
    // changes these two options for every trace on the host with active events, so they stay if there is
    // another trace.
    if is_alone {
        for option in ["norecord-cmd", "norecord-tgid"] {
            problems.extend(instance.write("trace_options", option).err().map(|error| error.to_string()));
        }
    }
    Ok(problems)
}

/// The size of this instance's sub-buffers: configurable since Linux 6.8, before that one page.
fn page_bytes(instance: &Instance) -> Result<usize, TraceError> {
    let path = instance.within("buffer_subbuf_size_kb");
    if !instance.tracefs.exists(&path) {
        return Ok(rustix::param::page_size());
    }
    let text = instance.tracefs.read(&path)?;
    let bytes = text.trim().parse::<usize>().ok().and_then(|kb| kb.checked_mul(1024));
    bytes.filter(|bytes| (1..=PAGE_BYTES_MAX).contains(bytes)).ok_or_else(|| {
        let shown = instance.tracefs.shown(&path);
        TraceError::new(Unparsable::new(shown, &text, "a size in KiB, 4096 at most"))
    })
}

/// Warns if the host's own trace will no longer grow, from the content of `buffer_size_kb` before and after.
///
/// Its buffer is small until first used, "7 (expanded: 1408)", and then grows. Older kernels, including 6.1
/// (but no longer 6.12), have one flag for all traces that says whether the size is settled. Setting the size
/// of any instance's buffer sets the flag, and the host's own buffer then stays small until its size is set
/// explicitly. Keeping lowlat's instance at its initial size would make the host's own buffer grow at once
/// and permanently, by the same amount of memory for each CPU.
fn kept_small(before: &str, after: &str) -> Option<String> {
    let (small, rest) = before.split_once(" (expanded: ")?;
    let full = rest.strip_suffix(')')?.parse::<u64>().ok()?;
    (after.trim() == small.trim()).then(|| {
        format!(
            "This kernel keeps the buffer of its own trace at {small} KiB for each CPU, because the size of \
             an instance's buffer was set. Before you use that trace, run \"echo {full} > \
             /sys/kernel/tracing/buffer_size_kb\" as root."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_no_longer_grows_is_reported() {
        let told = kept_small("7 (expanded: 1408)", "7").unwrap();
        assert!(told.contains("at 7 KiB for each CPU") && told.contains("echo 1408 > "), "{told}");
        for (before, after) in [
            ("7 (expanded: 1408)", "7 (expanded: 1408)"),
            ("7 (expanded: 1408)", "1408"),
            ("7", "7"),
            ("X", "7"),
        ] {
            assert_eq!(kept_small(before, after), None, "{before} {after}");
        }
    }
}
