//! Attribution for one CPU: events and interruptions in, causes out.

use super::{
    kept::{Keeper, TickSpan},
    keys::{CauseKey, KeyId, KeyTable},
    names::CauseNames,
    queue::Queue,
    record::RecordWriter,
    replay::EventReplay,
    senders::{Note, PendingNotes, SenderId, SenderSums},
    totals::Totals,
    windows::Windows,
};
use crate::{CauseKind, CpuCauses, OwnHolds};
use hdrhistogram::Histogram;
use lowlat_host::{CpuId, TickScale, histogram, ticks_between};
use lowlat_trace::{Activity, Channel, Hold, TraceEvent, TraceNames, TraceStep, Vector};
use std::{collections::BTreeSet, sync::Arc};

/// Longest part of a gap before, between or after activities that counts as the kernel's entry, exit or scheduler, and
/// so belongs to an adjacent activity. An entry or exit takes a few hundred instructions and a switch a few thousand,
/// which is about a microsecond. Cold caches, exits to a hypervisor and the tracepoints themselves multiply that. The
/// limit is ten times as long; an SMI takes longer.
pub const ENTRY_EXIT_NS_MAX: u64 = 10_000;

/// Events that may wait in one attributor, unless a plan needs another number: 50 ms of a CPU with a million
/// events per second.
pub const EVENTS_MAX: usize = 50_000;

/// Events after an interrupt's start among which the functions that it runs are searched.
const AHEAD_MAX: usize = 64;

/// Digits of the histogram of holds: those of the sampler's histogram.
const HOLD_DIGITS: u8 = 3;

const SECOND_NS: u64 = 1_000_000_000;

/// Parameters for attributing one CPU's interruptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributionPlan {
    pub cpu: CpuId,
    /// Thread ID of its sampler.
    pub sampler_tid: i32,
    /// Thread IDs of lowlat itself.
    pub own_tids: Arc<BTreeSet<i32>>,
    /// Frequency of the counter in hertz.
    pub hz: u64,
    /// Reading of the counter at the start of the run.
    pub epoch_ticks: u64,
    /// Distance by which time stamps may lie outside the interruption that they belong to. It covers the difference
    /// between the trace's clock and the sampler's readings, and the time of one recording, in which an
    /// interruption can start unnoticed.
    pub slack_ticks: u64,
    /// Number of longest interruptions kept.
    pub worst_count: usize,
    /// Number of first interruptions kept.
    pub first_count: usize,
    pub sleep: Sleep,
    /// Events that may wait ([`EVENTS_MAX`]); at least as many as one round of the collector can push.
    pub events_max: usize,
}

/// Reason that a measured thread sleeps. An interruption may then start while other threads run, which is known from
/// the last switch before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sleep {
    /// It never does, and runs right before each interruption.
    #[default]
    Never,
    Messages,
    /// It waits for a timer, and an interruption starts when that is due.
    Timer,
}

/// The main cause of an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Main {
    pub longest: CauseKey,
    /// The longest part with a known name; `None` if there is none.
    pub named: Option<CauseKey>,
    /// It contained an event of the kernel.
    pub has_event: bool,
}

impl Main {
    /// The longest named part, otherwise the longest part: more of an interruption may be unexplained than
    /// explained.
    pub fn key(self) -> CauseKey {
        self.named.unwrap_or(self.longest)
    }
}

/// Attributes one CPU's interruptions.
///
/// In each round of the collector, push all events that were read. Then attribute the interruptions that
/// ended at least [`AttributionPlan::slack_ticks`] before the last of them was read, and call
/// [`CpuAttributor::pass`] for the remaining ones.
#[derive(Debug)]
pub struct CpuAttributor {
    plan: AttributionPlan,
    scale: TickScale,
    pub(super) queue: Queue,
    keys: KeyTable,
    pub(super) replay: EventReplay,
    totals: Totals,
    pub(super) keeper: Keeper,
    windows: Windows,
    /// Notes from senders on other CPUs; `None` if these are not traced.
    inbox: Option<PendingNotes>,
    senders: SenderSums,
    /// The thread on the CPU after the events that were consumed.
    running: Option<i32>,
    /// Reason that the thread cannot run, after the events that were consumed.
    held: Option<Hold>,
    /// The counts so far.
    found: CpuCauses,
    attributed_ticks: u64,
    holds: OwnHolds,
    hold_lengths: Option<Histogram<u64>>,
    kernel_ticks: u64,
    kernel_unnamed_ticks: u64,
}

impl CpuAttributor {
    /// Creates an attributor with nearly all its memory allocated; kept interruptions add a bounded amount
    /// when they first occur.
    pub fn new(plan: AttributionPlan) -> Self {
        let scale = TickScale::new(plan.hz);
        Self {
            scale,
            queue: Queue::new(plan.events_max),
            keys: KeyTable::new(),
            replay: EventReplay::new(plan.sampler_tid, plan.sleep, scale.ticks(ENTRY_EXIT_NS_MAX)),
            totals: Totals::new(),
            keeper: Keeper::new(plan.worst_count, plan.first_count),
            windows: Windows::default(),
            inbox: None,
            senders: SenderSums::default(),
            running: None,
            held: None,
            found: CpuCauses { cpu: plan.cpu, ..CpuCauses::default() },
            attributed_ticks: 0,
            holds: OwnHolds::default(),
            hold_lengths: None,
            kernel_ticks: 0,
            kernel_unnamed_ticks: 0,
            plan,
        }
    }

    /// Also finds the senders of what arrives from other CPUs, given their notes ([`CpuAttributor::take_note`]).
    #[must_use]
    pub fn with_senders(mut self) -> Self {
        self.inbox = Some(PendingNotes::new(self.scale));
        self.senders.reserve();
        self.replay.senders.reserve();
        self
    }

    /// States that times count from this reading of the counter on, which the plan may not have known yet.
    pub fn begin(&mut self, epoch_ticks: u64) {
        self.plan.epoch_ticks = epoch_ticks;
    }

    /// Takes what was sent to this CPU, in any order. Everything that was sent before an interruption's end must
    /// have been taken when it is attributed.
    pub fn take_note(&mut self, note: Note) {
        if let Some(inbox) = &mut self.inbox {
            inbox.push(note);
        }
    }

    /// States that all notes so far were taken. Call it before attributing.
    pub fn settle_notes(&mut self) {
        if let Some(inbox) = &mut self.inbox {
            inbox.settle();
        }
    }

    /// Takes events in trace order. If more wait than the plan allows, the oldest are dropped: they count as
    /// lost, and interruptions at that time as not traced.
    pub fn push_events(&mut self, events: &[TraceEvent]) {
        let found = &mut self.found;
        for event in events {
            match event.step {
                TraceStep::Lost(count) => {
                    found.event_lost_count = found.event_lost_count.saturating_add(count);
                }
                _ => found.event_count += 1,
            }
            self.queue.push(*event);
        }
    }

    /// Attributes the interruption between two readings of the sampler. All events up to `now` plus the slack
    /// must have been pushed; those up to its end are consumed. Interruptions must be in time order.
    pub fn attribute(&mut self, before: u64, now: u64) -> Main {
        // A clock that ran backwards counts as no time; the sampler does not report such a gap.
        let length = ticks_between(before, now).unwrap_or(0);
        let at = ticks_between(self.plan.epoch_ticks, before).unwrap_or(0);
        let span = TickSpan { at, length };
        self.replay_events(before, span);
        let main = self.main();
        self.found.attributed_count += 1;
        self.attributed_ticks = self.attributed_ticks.saturating_add(length);
        if main.1.has_event {
            self.note_kernel(length);
        }
        self.note_hold(main.1.longest, self.scale.ns(length));
        self.totals.add(&self.replay.parts, main.0, at / self.scale.ticks(SECOND_NS).max(1));
        self.senders.add(&self.replay.senders);
        self.keeper.keep(span, self.windows.open(), &self.replay, &self.keys);
        main.1
    }

    /// Sorts an interruption into the sampler's own, by the limit of its real-time class, and the others.
    fn note_hold(&mut self, main: CauseKey, length_ns: u64) {
        if main != CauseKey::Activity(Activity::Held(Hold::Limit)) {
            self.holds.others_ns_max = self.holds.others_ns_max.max(length_ns);
            return;
        }
        self.holds.count += 1;
        self.holds.ns_total = self.holds.ns_total.saturating_add(length_ns);
        let lengths = self.hold_lengths.get_or_insert_with(|| {
            Histogram::new(HOLD_DIGITS).expect("the number of digits is one that a histogram accepts")
        });
        // The histogram grows as needed; a length that exceeds its range is left out.
        let _ = lengths.record(length_ns.max(1));
    }

    /// The sampler's own interruptions; `None` if there was none, or if some interruptions did not arrive here.
    fn own_holds(&self) -> Option<OwnHolds> {
        let lengths = self.hold_lengths.as_ref().filter(|_| self.found.ring_lost_count == 0)?;
        Some(OwnHolds { histogram: histogram::encode(lengths), ..self.holds.clone() })
    }

    /// Counts an interruption in which the kernel ran, and its unnamed time.
    fn note_kernel(&mut self, length: u64) {
        let unnamed = [CauseKind::Unexplained, CauseKind::EntryExit, CauseKind::NotTraced]
            .map(|kind| self.replay.parts.of_kind(kind));
        let outside = self.replay.outside();
        self.found.kernel_count += 1;
        self.kernel_ticks = self.kernel_ticks.saturating_add(length.saturating_sub(outside));
        let unnamed = unnamed.iter().sum::<u64>().saturating_sub(outside);
        self.kernel_unnamed_ticks = self.kernel_unnamed_ticks.saturating_add(unnamed);
    }

    fn replay_events(&mut self, before: u64, span: TickSpan) {
        let slack = i64::try_from(self.plan.slack_ticks).unwrap_or(i64::MAX);
        let end = i64::try_from(span.length).unwrap_or(i64::MAX);
        self.replay.begin(span.length, self.keeper.wants(span));
        self.pass(before);
        let sampler = self.plan.sampler_tid;
        if let Some(running) =
            self.running.filter(|running| self.plan.sleep != Sleep::Never && *running != sampler)
        {
            let step = TraceStep::Switch { from: sampler, to: running, hold: self.held };
            self.replay.step(-slack, step, None, &mut self.keys);
        }
        self.replay_while(before, |_, offset, _| offset < 0);
        self.replay.enter();
        self.replay_while(before, |_, offset, _| offset <= end);
        self.replay_while(before, |replay, offset, step| {
            offset <= end.saturating_add(slack) && replay.is_continued_by(step)
        });
        let is_lost_ahead =
            self.queue.events.front().is_some_and(|event| matches!(event.step, TraceStep::Lost(_)));
        self.replay.finish(is_lost_ahead);
    }

    fn replay_while(&mut self, before: u64, belongs: impl Fn(&EventReplay, i64, TraceStep) -> bool) {
        while let Some(event) = self.queue.events.front().copied() {
            let offset = event.ticks.wrapping_sub(before).cast_signed();
            if !belongs(&self.replay, offset, event.step) {
                return;
            }
            let sender = self.consume();
            let mut step = event.step;
            if let TraceStep::Switch { hold, .. } = &mut step {
                *hold = hold.filter(|hold| self.is_harm(*hold));
            }
            self.replay.step(offset, step, sender, &mut self.keys);
        }
    }

    /// True if a hold is not a wait of the thread's own choice.
    fn is_harm(&self, hold: Hold) -> bool {
        self.plan.sleep == Sleep::Never || hold != Hold::Blocked
    }

    fn main(&mut self) -> (KeyId, Main) {
        let parts = &mut self.replay.parts;
        if parts.iter().next().is_none() {
            parts.begin(KeyId::of_kind(CauseKind::Unexplained));
        }
        let longest = parts.longest(&self.keys, |_| true);
        let named = parts.longest(&self.keys, CauseKey::is_named);
        let id = longest.map_or(KeyId::of_kind(CauseKind::Unexplained), |(id, _)| id);
        let main = Main {
            longest: self.keys.key(id),
            named: named.map(|(id, _)| self.keys.key(id)),
            has_event: self.replay.has_event,
        };
        (id, main)
    }

    /// States that no later interruption starts before this moment, so that earlier events (less the slack)
    /// can be dropped.
    pub fn pass(&mut self, ticks: u64) {
        let keep_from = ticks.wrapping_sub(self.plan.slack_ticks);
        while self
            .queue
            .events
            .front()
            .is_some_and(|event| event.ticks.wrapping_sub(keep_from).cast_signed() < 0)
        {
            self.consume();
        }
    }

    /// Drops the first event, follows the thread on the CPU, and returns the event's sender on another CPU.
    fn consume(&mut self) -> Option<SenderId> {
        let event = self.queue.pop()?;
        match event.step {
            TraceStep::Switch { from, to, hold } => {
                self.running = Some(to);
                if from == self.plan.sampler_tid || to == self.plan.sampler_tid {
                    self.held = hold.filter(|hold| to != self.plan.sampler_tid && self.is_harm(*hold));
                }
            }
            TraceStep::Lost(_) => (self.running, self.held) = (None, None),
            _ => {}
        }
        let inbox = self.inbox.as_mut()?;
        match event.step {
            TraceStep::Called { function, request } if request != 0 => {
                Some(inbox.function(event.ticks, request, function))
            }
            TraceStep::Enter(Activity::Vector(Vector::Reschedule)) => {
                Some(inbox.interrupt(event.ticks, Channel::Reschedule))
            }
            TraceStep::Enter(Activity::Vector(Vector::CallFunction | Vector::CallFunctionSingle)) => {
                let sender = inbox.interrupt(event.ticks, Channel::Call);
                Some(if sender == SenderId::UNKNOWN { sender_of_all(inbox, &self.queue) } else { sender })
            }
            TraceStep::Lost(_) => {
                inbox.forget_until(event.ticks);
                None
            }
            _ => None,
        }
    }

    /// Counts interruptions that did not arrive because the ring between sampler and collector was full.
    pub fn note_ring_lost(&mut self, count: u64) {
        self.found.ring_lost_count = self.found.ring_lost_count.saturating_add(count);
    }

    /// Closes a window of about a second. `moved`: whether this CPU's steal time or SMI count increased in
    /// it. Call it after all interruptions of the window were attributed, with counters read after that.
    pub fn close_window(&mut self, moved: bool) {
        self.windows.close(moved);
        self.totals.close_window(self.windows);
        self.keeper.close_window(self.windows);
    }

    /// Number of events pushed so far, and number of events lost before or here.
    pub fn event_counts(&self) -> (u64, u64) {
        (self.found.event_count, self.found.event_lost_count.saturating_add(self.queue.lost_count))
    }

    /// Events that wait for their interruption.
    pub fn waiting_count(&self) -> usize {
        self.queue.events.len()
    }

    /// Returns the causes, with names. `run_ns`: how long the sampler ran since the epoch. The caller adds counters and
    /// the SMI count.
    pub fn finish(self, names: &TraceNames, run_ns: u64) -> CpuCauses {
        let whole_seconds = run_ns / SECOND_NS;
        let (_, event_lost_count) = self.event_counts();
        let record = RecordWriter {
            scale: self.scale,
            keys: &self.keys,
            names: CauseNames { names, own_tids: &self.plan.own_tids, sleep: self.plan.sleep },
            windows: self.windows,
        };
        let own_holds = self.own_holds();
        let (worst, first) = self.keeper.finish();
        CpuCauses {
            window_count: whole_seconds,
            kernel_ns_total: self.scale.ns(self.kernel_ticks),
            kernel_unnamed_ns_total: self.scale.ns(self.kernel_unnamed_ticks),
            totals: record
                .totals(self.attributed_ticks, self.totals.finish(self.windows, &self.keys, whole_seconds)),
            event_lost_count,
            own_holds,
            senders: self.senders.finish(self.scale),
            worst: worst.iter().map(|kept| record.explained(kept)).collect(),
            first: first.iter().map(|kept| record.explained(kept)).collect(),
            ..self.found
        }
    }
}

/// The sender of all functions that an interrupt runs, which has just started; unknown if they have several.
fn sender_of_all(inbox: &PendingNotes, queue: &Queue) -> SenderId {
    let mut sender = None;
    for event in queue.events.iter().take(AHEAD_MAX) {
        match event.step {
            TraceStep::Called { function, request } => {
                let found = inbox.peek(event.ticks, request, function);
                if sender.is_some_and(|sender| sender != found) {
                    return SenderId::UNKNOWN;
                }
                sender = Some(found);
            }
            TraceStep::Exit(Activity::Vector(Vector::CallFunction | Vector::CallFunctionSingle)) => {
                return sender.unwrap_or(SenderId::UNKNOWN);
            }
            TraceStep::Lost(_) => break,
            _ => {}
        }
    }
    SenderId::UNKNOWN
}
