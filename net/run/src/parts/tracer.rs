//! The kernel's trace of the CPUs of both threads, read between batches.

use super::Thread;
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_jitter::{
    CpuCauses, Warning,
    attribution::{AttributionPlan, CpuAttributor, Sleep},
};
use lowlat_jitter_run::tracefs::{CpuPipe, Tracing, function_names};
use lowlat_jitter_run::{
    clock::{ArchCounter, TickScale},
    jitter::{StampClock, StealWatch, TraceSetup, filter_page_faults},
};
use lowlat_net::pingpong::parts::{SLOWEST_MAX, Stamps, Wakes};
use lowlat_trace::{Decoder, TraceEvent, TraceStep};
use std::sync::Arc;

/// Starts of wake-ups; recorded for the two threads only.
const WAKING: &str = "sched/sched_waking";
/// Largest distance of an event from its round trip: the duration of a recording.
const SLACK_NS: u64 = 2_000;
/// Events that may wait for their round trips: those of a batch.
const EVENTS_MAX: usize = 200_000;
/// Events decoded at once; more than a sub-buffer of 64 KiB can contain.
const EVENTS_AT_ONCE: usize = 32_768;
/// Wake-ups of one thread in a batch that are kept.
const WAKES_MAX: usize = 65_536;
/// Length of a window in which steal time increased or not.
const WINDOW_NS: u64 = 1_000_000_000;
/// Thread id that matches no thread, for CPUs that only receive packets.
const NO_THREAD: i32 = -1;

/// The same moment on the counter and the real-time clock: the start of a round trip.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub start: u64,
    pub real_ns: Option<u64>,
}

/// A trace of a run.
#[derive(Debug)]
pub struct Tracer {
    tracing: Tracing,
    pipes: Vec<CpuPipe>,
    decoder: Decoder,
    scale: TickScale,
    lanes: Vec<TracedCpu>,
    windows: StealWatch,
    window_began: u64,
    /// The client's and the server's thread.
    threads: [Option<i32>; 2],
    /// Times when the kernel started to wake them in this batch, in order.
    wakes: [Vec<u64>; 2],
    events: Vec<TraceEvent>,
    /// Events of this batch are missing.
    is_lost: bool,
    now: StampClock,
}

/// A traced CPU, in the order of the pipes.
#[derive(Debug)]
struct TracedCpu {
    cpu: CpuId,
    thread: i32,
    attributor: Option<CpuAttributor>,
}

impl Tracer {
    /// Sets up a trace of the CPUs of the client and, on the same host, the server, with those where their packets
    /// arrive. Recording stays off.
    ///
    /// # Errors
    /// A sentence that says why tracing is unavailable.
    pub fn start(
        root: &Root,
        scale: TickScale,
        client: Thread,
        server: Option<Thread>,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        let threads = [client.id, server.and_then(|server| server.id)];
        let ends: Vec<Thread> = [Some(client), server].into_iter().flatten().collect();
        let cpus: CpuSet = ends.iter().flat_map(|end| [end.cpu, end.incoming_cpu]).flatten().collect();
        let mut warnings: Vec<Warning> = Vec::new();
        let TraceSetup { tracing, pipes, .. } =
            TraceSetup::start(root, &cpus, ArchCounter::KIND, &mut warnings)?;
        notes.extend(warnings.iter().map(ToString::to_string));
        let of_threads = |field: &str| {
            let wanted: Vec<String> = threads.iter().flatten().map(|id| format!("{field} == {id}")).collect();
            wanted.join(" || ")
        };
        filter_page_faults(&tracing, &of_threads("common_pid"));
        tracing.set_filter(WAKING, &of_threads("pid")).map_err(|error| error.to_string())?;
        tracing.set_event(WAKING, true).map_err(|error| error.to_string())?;
        let now = StampClock::new(ArchCounter::KIND, scale.hz());
        let lane = |cpu: CpuId| TracedCpu {
            cpu,
            thread: ends.iter().find(|end| end.cpu == Some(cpu)).and_then(|end| end.id).unwrap_or(NO_THREAD),
            attributor: None,
        };
        Ok(Self {
            decoder: tracing.decoder(now.map()),
            lanes: cpus.iter().map(lane).collect(),
            windows: StealWatch::new(root, &cpus),
            window_began: now.now(),
            threads,
            wakes: [(); 2].map(|()| Vec::with_capacity(WAKES_MAX)),
            events: Vec::with_capacity(EVENTS_AT_ONCE),
            is_lost: false,
            tracing,
            pipes,
            scale,
            now,
        })
    }

    /// Starts a size, whose times count from `epoch`.
    pub fn begin_size(&mut self, epoch: u64) {
        if let Some(map) = self.now.better_map() {
            self.decoder.set_clock(map);
        }
        for lane in &mut self.lanes {
            lane.attributor = Some(CpuAttributor::new(AttributionPlan {
                cpu: lane.cpu,
                sampler_tid: lane.thread,
                own_tids: Arc::default(),
                hz: self.scale.hz(),
                epoch_ticks: epoch,
                slack_ticks: self.scale.ticks(SLACK_NS),
                // More than are asked for: round trips without stamps are among the slowest too.
                worst_count: 2 * SLOWEST_MAX,
                first_count: 0,
                sleep: Sleep::Messages,
                events_max: EVENTS_MAX,
            }));
        }
    }

    pub fn switch_on(&mut self) {
        self.is_lost = self.tracing.recording.set_on(true).is_err();
        self.wakes.iter_mut().for_each(Vec::clear);
    }

    /// Stops recording, and reads what was recorded.
    pub fn switch_off(&mut self) {
        // An instance that was removed meanwhile records nothing any more.
        let _ = self.tracing.recording.set_on(false);
        let Self { pipes, lanes, decoder, events, wakes, threads, is_lost, .. } = self;
        for (pipe, lane) in pipes.iter_mut().zip(lanes) {
            loop {
                events.clear();
                let drained = pipe.drain(decoder, events);
                for event in events.iter() {
                    match event.step {
                        TraceStep::Lost(_) => *is_lost = true,
                        TraceStep::Wakes(thread) => note_wake(wakes, threads, thread, event.ticks, is_lost),
                        _ => {}
                    }
                }
                if let Some(attributor) = &mut lane.attributor {
                    attributor.push_events(events);
                }
                match drained {
                    Ok(drained) if !drained.is_empty => {}
                    Ok(_) => break,
                    Err(_) => {
                        *is_lost = true;
                        break;
                    }
                }
            }
        }
        for wakes in wakes {
            wakes.sort_unstable();
        }
    }

    /// Matches a round trip with the events of every CPU. Round trips must be in time order.
    pub fn attribute(&mut self, start: u64, end: u64) {
        for attributor in self.lanes.iter_mut().filter_map(|lane| lane.attributor.as_mut()) {
            attributor.attribute(start, end);
            attributor.pass(end);
        }
        if self.now.now().saturating_sub(self.window_began) >= self.scale.ticks(WINDOW_NS) {
            self.close_window();
        }
    }

    fn close_window(&mut self) {
        self.window_began = self.now.now();
        let moved = self.windows.poll();
        for lane in &mut self.lanes {
            if let Some(attributor) = &mut lane.attributor {
                attributor.close_window(moved.contains(lane.cpu));
            }
        }
    }

    /// Returns when the thread of an end was woken for a message: the first time between its arrival and its receipt.
    /// `place`: 0 for the client, 1 for the server.
    pub fn wake(&self, place: usize, moment: Moment, row: &Stamps) -> Wakes {
        let known = (|| {
            self.threads.get(place).copied().flatten()?;
            let at = |ns: Option<u64>| {
                let ns = ns?.checked_sub(moment.real_ns?)?;
                Some((ns, moment.start.saturating_add(self.scale.ticks(ns))))
            };
            let ((arrived_ns, arrived), (_, received)) = (at(row.arrived_ns)?, at(row.received_ns)?);
            let wakes = self.wakes.get(place).filter(|_| !self.is_lost)?;
            let next =
                wakes.get(wakes.partition_point(|ticks| *ticks < arrived)).filter(|at| **at <= received);
            Some((arrived_ns, arrived, next.copied()))
        })();
        match (known, moment.real_ns) {
            (Some((arrived_ns, arrived, Some(woken))), Some(real_ns)) => {
                Wakes::At(real_ns.saturating_add(arrived_ns).saturating_add(self.scale.ns(woken - arrived)))
            }
            (Some((_, _, None)), _) => Wakes::Awake,
            _ => Wakes::Unknown,
        }
    }

    /// Ends a size. Returns the slowest round trips of every CPU with their causes.
    pub fn end_size(&mut self, notes: &mut Vec<String>) -> Vec<CpuCauses> {
        self.close_window();
        let mut names = self.decoder.names.clone();
        match function_names(&self.decoder.functions) {
            Ok(functions) => functions.add_to(&mut names),
            Err(error) => notes.push(Warning::FunctionsUnnamed { error: error.to_string() }.to_string()),
        }
        let lanes = self.lanes.iter_mut().filter_map(|lane| lane.attributor.take());
        // Only the slowest round trips are read: nothing is counted by seconds.
        lanes.map(|attributor| attributor.finish(&names, 0)).collect()
    }

    /// Removes the trace. Returns a sentence if that failed.
    pub fn finish(self) -> Option<String> {
        drop(self.pipes);
        let failed = |error: lowlat_jitter_run::tracefs::TraceError| Warning::TraceNotRemoved {
            error: error.to_string(),
        };
        self.tracing.recording.finish().err().map(|error| failed(error).to_string())
    }
}

/// Keeps the start of a wake-up; more than expected are lost.
fn note_wake(
    wakes: &mut [Vec<u64>; 2],
    threads: &[Option<i32>; 2],
    thread: i32,
    ticks: u64,
    is_lost: &mut bool,
) {
    for (wakes, _) in wakes.iter_mut().zip(threads).filter(|(_, known)| **known == Some(thread)) {
        if wakes.len() < wakes.capacity() {
            wakes.push(ticks);
        } else {
            *is_lost = true;
        }
    }
}
