//! Reads the trace of each measured CPU and attributes its interruptions, round by round.

mod origin;

use super::{
    senders::SenderReader,
    setup::{TraceSetup, filter_page_faults},
    trace_clock::StampClock,
};
use crate::tracefs::{CpuPipe, Tracing, function_names};
use crate::{
    clock::TickScale,
    jitter::{JitterOptions, Lane, Started, windows::StealWatch},
};
use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter::{
    Cause, CauseSource, CpuCauses, JitterCauses, JitterRecord, Stop, Warning,
    attribution::{
        AttributionPlan, CauseKey, CauseNames, CpuAttributor, EVENTS_MAX, GroupFinder, GroupPlan, Hit, Sleep,
    },
};
use lowlat_trace::{Decoder, TraceEvent, TraceNames};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Largest distance of an event from its interruption: the duration of a recording with cold caches, during
/// which an event can start undetected.
const SLACK_NS: u64 = 2_000;
/// Largest distance between starts of interruptions on several CPUs that count as one.
const GROUP_NS: u64 = 1_000;
/// Longest interruption expected when the queue of events is full: earlier events are then dropped.
const UNDER_WAY_NS: u64 = 1_000_000_000;
/// Length of a window in which steal time increased or not.
const WINDOW_NS: u64 = 1_000_000_000;
/// Sub-buffers of one CPU read per round; the rest waits for the next round, so that a flood on one CPU does
/// not block the others.
const PAGES_PER_ROUND: u32 = 8_192;
/// Events that may wait on all CPUs together: 98 MiB. Up to 64 CPUs each has [`EVENTS_MAX`]; more share it.
const EVENTS_TOTAL: usize = 64 * EVENTS_MAX;

/// The trace of a run in progress.
#[derive(Debug)]
pub struct TraceReader {
    tracing: Tracing,
    pipes: Vec<CpuPipe>,
    decoder: Decoder,
    clock: StampClock,
    scale: TickScale,
    windows: StealWatch,
    cpus: Vec<OneCpu>,
    groups: Option<GroupFinder>,
    senders: Option<SenderReader>,
    events: Vec<TraceEvent>,
    /// Events of a CPU that may wait.
    events_max: usize,
    window_began: u64,
    /// Times count from here on; 0 before the first round.
    epoch: u64,
    problems: Vec<Warning>,
    own_tids: Arc<BTreeSet<i32>>,
    /// Kind of sleep of the samplers.
    sleep: Sleep,
    /// Functions whose names were looked up during the run, and the names.
    looked_up: BTreeSet<u64>,
    named: TraceNames,
    /// CPUs allowed for the threads that were on a measured CPU; `None` for a thread that had ended.
    allowed: BTreeMap<i32, Option<CpuSet>>,
}

#[derive(Debug)]
struct OneCpu {
    attributor: CpuAttributor,
    /// End of its last interruption.
    reached: u64,
    ring_lost: u64,
    /// Its pipe has failed.
    is_broken: bool,
}

impl TraceReader {
    /// Starts recording. Called before the samplers start.
    pub fn start(
        setup: TraceSetup,
        root: &Root,
        options: &JitterOptions,
        started: &Started,
        lanes: &[Lane],
    ) -> Self {
        let TraceSetup { tracing, pipes, senders, .. } = setup;
        let scale = started.scale;
        let clock = StampClock::new(started.counter, scale.hz());
        let own_tids = Arc::new(own_threads(root));
        let page_events = pipes.iter().map(CpuPipe::events_max).max().unwrap_or(0);
        let (events_max, at_once) = events_for(lanes.len(), page_events);
        let sleep = options.wake_every.map_or(Sleep::Never, |_| Sleep::Timer);
        let has_senders = senders.as_ref().is_some_and(|senders| senders.tracing.has_sends());
        let one = |lane: &Lane| {
            let attributor = CpuAttributor::new(AttributionPlan {
                cpu: lane.cpu,
                sampler_tid: lane.thread_id,
                own_tids: Arc::clone(&own_tids),
                hz: scale.hz(),
                epoch_ticks: 0,
                slack_ticks: scale.ticks(SLACK_NS),
                worst_count: options.worst_count,
                first_count: options.first_count,
                sleep,
                events_max,
            });
            let attributor = if has_senders { attributor.with_senders() } else { attributor };
            OneCpu { attributor, reached: 0, ring_lost: 0, is_broken: false }
        };
        let mut reader = Self {
            decoder: tracing.decoder(clock.map()),
            windows: StealWatch::new(root, &options.cpus),
            cpus: lanes.iter().map(one).collect(),
            groups: None,
            senders: senders.map(|senders| SenderReader::new(senders, clock.map(), &options.cpus)),
            events: Vec::with_capacity(at_once),
            events_max,
            window_began: 0,
            epoch: 0,
            problems: Vec::new(),
            own_tids,
            sleep,
            looked_up: BTreeSet::new(),
            named: TraceNames::default(),
            allowed: BTreeMap::new(),
            tracing,
            pipes,
            clock,
            scale,
        };
        reader.filter_page_faults(lanes);
        // Before the receivers: what arrives must have been sent in the trace.
        reader.problems.extend(reader.senders.as_ref().and_then(SenderReader::start));
        let refused = reader.tracing.recording.set_on(true).err();
        reader.problems.extend(refused.map(|error| Warning::TraceNotOn { error: error.to_string() }));
        reader
    }

    /// Leaves out page faults of other threads than the samplers.
    fn filter_page_faults(&mut self, lanes: &[Lane]) {
        let tids = lanes.iter().map(|lane| lane.thread_id);
        let (Some(lowest), Some(highest)) = (tids.clone().min(), tids.max()) else { return };
        let filter = format!("common_pid >= {lowest} && common_pid <= {highest}");
        filter_page_faults(&self.tracing, &filter);
    }

    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The first round of a run: from here on times count from `epoch`.
    fn begin(&mut self, epoch: u64) {
        (self.epoch, self.window_began) = (epoch, epoch);
        let cpus: CpuSet = self.pipes.iter().map(CpuPipe::cpu).collect();
        if cpus.len() > 1 {
            self.groups = Some(GroupFinder::new(&GroupPlan {
                cpus,
                hz: self.scale.hz(),
                epoch_ticks: epoch,
                window_ticks: self.scale.ticks(GROUP_NS),
            }));
        }
        for one in &mut self.cpus {
            one.attributor.begin(epoch);
            one.reached = epoch;
        }
    }

    fn has_sends(&self) -> bool {
        self.senders.as_ref().is_some_and(|senders| senders.tracing.has_sends())
    }

    /// Reads what all CPUs have sent to the measured ones. Returns until when it is complete: interruptions that
    /// ended later may have causes that were not read.
    pub fn read_senders(&mut self, epoch: u64) -> u64 {
        if self.epoch == 0 {
            self.begin(epoch);
        }
        let until = self.now();
        let Some(senders) = &mut self.senders else { return u64::MAX };
        let (cpus, pipes) = (&mut self.cpus, &self.pipes);
        senders.read(&mut self.problems, |cpu, note| {
            // Pipes are in order of their CPUs.
            let place = pipes.binary_search_by_key(&cpu, CpuPipe::cpu).ok();
            if let Some(one) = place.and_then(|place| cpus.get_mut(place)) {
                one.attributor.take_note(note);
            }
        });
        for one in cpus {
            one.attributor.settle_notes();
        }
        until
    }

    /// Attributes the interruptions of one CPU since the last round, and appends their main causes to `keys`.
    /// `looked_at`: the counter before they were taken from the ring.
    ///
    /// The events of an interruption are in the buffer before its sampler can put it into the ring, so a read
    /// of the trace after the ring contains all of them.
    pub fn take(
        &mut self,
        place: usize,
        lane: &Lane,
        spans: &[(u64, u64)],
        looked_at: u64,
        keys: &mut Vec<CauseKey>,
    ) {
        let slack = self.scale.ticks(SLACK_NS);
        let mut next = spans.iter().copied().peekable();
        let mut pages = 0;
        loop {
            let is_empty = self.read(place, &mut pages);
            let Some(one) = self.cpus.get_mut(place) else { return };
            if one.is_broken {
                one.attributor.note_ring_lost(next.count() as u64);
                return;
            }
            // A flood waits for the next round, but not before all of these were matched with their events.
            let is_last = is_empty || (pages >= PAGES_PER_ROUND && next.peek().is_none());
            one.attributor.push_events(&self.events);
            let seen_until = self.events.last().map_or(0, |event| event.ticks);
            while let Some((before, now)) =
                next.next_if(|(_, now)| is_last || now.saturating_add(slack) < seen_until)
            {
                let key = one.attributor.attribute(before, now).key();
                keys.push(key);
                one.reached = now;
                if let Some(groups) = &mut self.groups {
                    groups.push(Hit { cpu: lane.cpu, before, now, key });
                }
            }
            if is_last {
                break;
            }
        }
        self.pass(place, lane, looked_at);
    }

    /// Reads some of a CPU's events. Returns true if there are no more.
    fn read(&mut self, place: usize, pages: &mut u32) -> bool {
        self.events.clear();
        let (Some(pipe), Some(one)) = (self.pipes.get_mut(place), self.cpus.get_mut(place)) else {
            return true;
        };
        if one.is_broken {
            return true;
        }
        match pipe.drain(&mut self.decoder, &mut self.events) {
            Ok(drained) => {
                *pages += drained.page_count;
                drained.is_empty
            }
            Err(error) => {
                one.is_broken = true;
                self.problems.push(Warning::TraceBroken { cpu: pipe.cpu(), error: error.to_string() });
                true
            }
        }
    }

    /// Drops events that no future interruption can contain, and counts what the ring lost.
    fn pass(&mut self, place: usize, lane: &Lane, looked_at: u64) {
        let Some(one) = self.cpus.get_mut(place) else { return };
        let long_ago = looked_at.saturating_sub(self.scale.ticks(UNDER_WAY_NS));
        one.attributor.pass(one.reached);
        if one.attributor.waiting_count() > self.events_max / 2 {
            one.attributor.pass(long_ago);
        }
        if let Some(groups) = &mut self.groups {
            groups.pass(lane.cpu, one.reached.max(long_ago));
        }
        let lost = lane.ring.lost_count();
        one.attributor.note_ring_lost(lost.saturating_sub(one.ring_lost));
        one.ring_lost = lost;
    }

    /// Ends a round: evaluates groups, and closes windows that have ended.
    pub fn end_round(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.judge();
        }
        self.ask_threads(false);
        let now = self.now();
        if now.saturating_sub(self.window_began) >= self.scale.ticks(WINDOW_NS) {
            self.window_began = now;
            self.close_window();
            if let Some(map) = self.clock.better_map() {
                self.decoder.set_clock(map);
                if let Some(senders) = &mut self.senders {
                    senders.decoder.set_clock(map);
                }
            }
        }
    }

    /// Looks up where new threads may run, or all of them `again`: some choose their CPUs after they started.
    fn ask_threads(&mut self, again: bool) {
        let (threads, allowed) = (&self.decoder.names.threads, &mut self.allowed);
        if threads.len() == allowed.len() && !again {
            return;
        }
        for tid in threads.keys() {
            if again || !allowed.contains_key(tid) {
                let cpus = affinity::of_thread(*tid).ok().filter(|_| *tid > 0);
                let known = allowed.entry(*tid).or_default();
                *known = cpus.or_else(|| known.take());
            }
        }
    }

    fn close_window(&mut self) {
        let moved = self.windows.poll();
        for (one, pipe) in self.cpus.iter_mut().zip(&self.pipes) {
            one.attributor.close_window(moved.contains(pipe.cpu()));
        }
        if let Some(groups) = &mut self.groups {
            groups.close_window(moved);
        }
    }

    /// The causes of keys, with the names that are known so far. Functions that have none yet are looked up, which
    /// reads the kernel's table of symbols.
    pub fn causes_now(&mut self, keys: &mut dyn Iterator<Item = CauseKey>) -> Vec<Cause> {
        let unnamed: BTreeSet<u64> = self.decoder.functions.difference(&self.looked_up).copied().collect();
        if !unnamed.is_empty() {
            // Without the table, functions have their addresses.
            if let Ok(functions) = function_names(&unnamed) {
                functions.add_to(&mut self.named);
            }
            self.looked_up.extend(unnamed);
        }
        let mut names = self.decoder.names.clone();
        names.functions.clone_from(&self.named.functions);
        let names = CauseNames { names: &names, own_tids: &self.own_tids, sleep: self.sleep };
        keys.map(|key| names.cause(key)).collect()
    }

    /// Stops recording, once all samplers are done.
    pub fn stop(&mut self) {
        // An instance that was removed meanwhile records nothing any more.
        let _ = self.tracing.recording.set_on(false);
        if let Some(senders) = &self.senders {
            senders.stop();
        }
        self.ask_threads(true);
        self.close_window();
    }

    /// The causes, with names. Removes the trace. `halted`: the interruption that ended the run, with what is to be
    /// found out about it, and whether the trace is saved.
    pub fn into_causes(
        mut self,
        record: &JitterRecord,
        halted: Option<(&mut (Option<Hit>, Stop), bool)>,
        notes: &mut Vec<Warning>,
    ) -> JitterCauses {
        notes.append(&mut self.problems);
        let mut halted = halted.and_then(|((hit, stop), saves)| Some(((*hit)?, stop, saves)));
        let names = self.names(notes);
        let (lost, has_sends) = (self.lost_by_kernel(), self.has_sends());
        let run_ns = record.cpus.iter().map(|cpu| cpu.runtime_ns).max().unwrap_or(0);
        let cause_names = CauseNames { names: &names, own_tids: &self.own_tids, sleep: self.sleep };
        if let Some((hit, stop, saves)) = &mut halted {
            stop.hit.iter_mut().for_each(|of| of.cause = cause_names.cause(hit.key));
            if *saves {
                stop.trace = self.file(&names);
            }
        }
        let late_count = self.groups.as_ref().map_or(0, GroupFinder::late_count);
        notes.extend(if_any(late_count, |count| Warning::GroupsLate { count }));
        let groups = self.groups.map(|groups| groups.finish(self.scale.ticks(run_ns), &cause_names));
        let own_ns = |cpu: CpuId| record.cpus.iter().find(|of| of.cpu == cpu).map_or(0, |of| of.runtime_ns);
        let attributors = self.cpus.into_iter().zip(&self.pipes);
        let mut cpus: Vec<CpuCauses> =
            attributors.map(|(one, pipe)| one.attributor.finish(&names, own_ns(pipe.cpu()))).collect();
        let steps = halted
            .as_ref()
            .map(|(_, stop, _)| origin::steps_of(&cpus, stop.hit.as_ref()))
            .unwrap_or_default();
        let woken = halted.as_ref().and_then(|(hit, ..)| {
            let thread = origin::thread_of(hit, &steps)?;
            self.senders.as_mut()?.waker(thread, hit, &names, &self.own_tids)
        });
        let senders = self.senders.map(|senders| {
            let (senders, places) = senders.finish(&names, &self.own_tids, notes);
            for cpu in &mut cpus {
                cpu.place_senders(&places);
            }
            senders
        });
        if let Some((hit, stop, _)) = halted {
            let ns = |ticks: i64| self.scale.ns(ticks.unsigned_abs()).cast_signed() * ticks.signum();
            let woken = woken.map(|(ticks, sender, symbols)| (ns(ticks), sender, symbols));
            let symbols = if names.functions.is_empty() { Reading::Denied } else { Reading::Known(()) };
            let senders = (senders.as_deref().unwrap_or_default(), symbols);
            origin::settle(stop, (hit.cpu, &steps), woken, senders);
        }
        notes.extend(losses(&cpus, &lost));
        let missed_count = self.decoder.counts.missed_switch_count;
        notes.extend(if_any(missed_count, |count| Warning::SwitchesMissed { count }));
        let trace_clock = self.tracing.clock.name().to_owned();
        drop(self.pipes);
        let left = self.tracing.recording.finish().err();
        notes.extend(left.map(|error| Warning::TraceNotRemoved { error: error.to_string() }));
        JitterCauses {
            source: CauseSource::Trace,
            trace_clock,
            cpus,
            groups,
            senders: senders.filter(|_| has_sends),
            ..JitterCauses::default()
        }
    }

    fn names(&self, notes: &mut Vec<Warning>) -> TraceNames {
        let mut names = self.decoder.names.clone();
        for (tid, thread) in &mut names.threads {
            thread.allowed_cpus = self.allowed.get(tid).cloned().flatten();
        }
        let mut functions = self.decoder.functions.clone();
        functions.extend(self.senders.iter().flat_map(|senders| senders.book.addresses()));
        match function_names(&functions) {
            Ok(functions) => functions.add_to(&mut names),
            Err(error) => notes.push(Warning::FunctionsUnnamed { error: error.to_string() }),
        }
        names
    }

    /// Events that the kernel dropped, by its own count.
    fn lost_by_kernel(&self) -> Vec<(CpuId, u64)> {
        let lost = |pipe: &CpuPipe| Some((pipe.cpu(), self.tracing.stats(pipe.cpu()).ok()?.lost_count()));
        self.pipes.iter().filter_map(lost).collect()
    }
}

/// Events of each CPU that may wait in a run on this many, and how many are decoded before they are attributed: at
/// least one sub-buffer's.
fn events_for(cpu_count: usize, page_events: usize) -> (usize, usize) {
    let events_max =
        (EVENTS_TOTAL / cpu_count.max(1)).clamp(2 * page_events.max(1), EVENTS_MAX.max(2 * page_events));
    (events_max, (events_max * 2 / 3).max(page_events))
}

/// The threads of this process, including samplers.
fn own_threads(root: &Root) -> BTreeSet<i32> {
    let names = root.list("/proc/self/task").into_known().unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// A warning about what happened so often, if it did.
pub(super) fn if_any(count: u64, warning: impl FnOnce(u64) -> Warning) -> Option<Warning> {
    (count > 0).then(|| warning(count))
}

fn losses(cpus: &[CpuCauses], lost: &[(CpuId, u64)]) -> Vec<Warning> {
    let sum = |lost: &[(CpuId, u64)]| lost.iter().map(|(_, count)| count).sum();
    let on =
        |lost: &[(CpuId, u64)]| lost.iter().filter(|(_, count)| *count > 0).map(|(cpu, _)| *cpu).collect();
    let rings: Vec<(CpuId, u64)> = cpus.iter().map(|cpu| (cpu.cpu, cpu.ring_lost_count)).collect();
    let dropped = if_any(sum(lost), |count| Warning::EventsDropped { cpus: on(lost), count });
    let full = if_any(sum(&rings), |count| Warning::NotAnalysed { cpus: on(&rings), count });
    dropped.into_iter().chain(full).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_trace::Decoder;

    #[test]
    fn waiting_events_of_all_cpus_are_bounded() {
        let page = Decoder::events_max(4_096);
        assert_eq!(events_for(1, page), (EVENTS_MAX, EVENTS_MAX * 2 / 3));
        assert_eq!(events_for(64, page).0, EVENTS_MAX);
        for cpus in [65, 256, 1_024] {
            let (events_max, at_once) = events_for(cpus, page);
            assert!(events_max * cpus <= EVENTS_TOTAL && at_once >= page && at_once < events_max, "{cpus}");
        }
        // Large sub-buffers need more.
        let page = Decoder::events_max(65_536);
        assert_eq!(events_for(8_192, page), (2 * page, 2 * page * 2 / 3));
    }
}
