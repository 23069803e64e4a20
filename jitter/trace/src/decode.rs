//! Decodes sub-buffers to events in the sampler's ticks.

use super::{
    Activity, Entry, Hold, MissedEvents, Page, PageError, TickMap, TraceEvent, TraceFormats, TraceNames,
    TraceStep, Vector,
    events::{Says, signal},
    formats::Threads,
};
use std::collections::BTreeSet;

/// Maximum number of named threads; later ones remain numbers.
pub const THREADS_MAX: usize = 4_096;
/// Maximum number of named device interrupts.
pub const IRQS_MAX: usize = 4_096;
/// Maximum number of function addresses kept for their names.
pub const FUNCTIONS_MAX: usize = 4_096;
/// Priorities from here on are of ordinary threads.
const ORDINARY_PRIO: i32 = 100;
/// A stamp earlier than the previous one by less than this (a second or two of any counter) counts as equal
/// to it, because such clocks are adjusted slightly. A larger step means that the counter was reset.
const BACK_TICKS_MAX: u64 = 1 << 32;

/// Decodes the sub-buffers of any number of CPUs to events.
#[derive(Debug)]
pub struct Decoder {
    formats: TraceFormats,
    clock: TickMap,
    /// Names seen so far, without functions: [`Decoder::functions`] has the addresses to look up.
    pub names: TraceNames,
    /// Addresses of functions seen so far.
    pub functions: BTreeSet<u64>,
    pub counts: DecoderCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecoderCounts {
    /// Records that became events.
    pub event_count: u64,
    /// Skipped records of unknown events.
    pub unknown_count: u64,
    /// Skipped records of known events that are too short for their fields.
    pub short_count: u64,
    /// Sub-buffers that could not be read completely; a [`TraceStep::Lost`] replaces the remainder of each.
    pub damaged_count: u64,
    /// Stamps earlier than the previous one on the same CPU.
    pub backward_count: u64,
    /// Events that the kernel reports as overwritten, if it reports their number.
    pub lost_count: u64,
    /// Number of times the kernel reports overwritten events.
    pub loss_count: u64,
    /// Context switches missing from the kernel's trace, inserted where the first event of another thread
    /// shows them.
    pub missed_switch_count: u64,
    /// Number of times a thread, interrupt or function stayed unnamed because the tables are full.
    pub unnamed_count: u64,
    /// The last error in a sub-buffer.
    pub last_damage: Option<PageError>,
}

/// Progress in the events of one CPU. One per CPU, kept from sub-buffer to sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuCursor {
    ticks: u64,
    /// Events of this CPU so far, without [`TraceStep::Lost`].
    pub event_count: u64,
    /// Events of this CPU that the kernel reported as overwritten.
    pub lost_count: u64,
    /// The thread on the CPU, once known from an event.
    running: Option<i32>,
}

impl CpuCursor {
    /// Advances to `ticks`, never backwards; `true` if they were earlier.
    fn advance(&mut self, ticks: u64) -> bool {
        let is_back = ticks < self.ticks;
        if !is_back || self.ticks - ticks > BACK_TICKS_MAX {
            self.ticks = ticks;
        }
        is_back
    }
}

impl Decoder {
    /// Creates a decoder for these formats; `clock` converts stamps to ticks.
    pub fn new(formats: &TraceFormats, clock: TickMap) -> Self {
        Self {
            formats: formats.clone(),
            clock,
            names: TraceNames::default(),
            functions: BTreeSet::new(),
            counts: DecoderCounts::default(),
        }
    }

    /// Uses another map for later stamps, when more distant readings have made it better.
    pub fn set_clock(&mut self, clock: TickMap) {
        self.clock = clock;
    }

    /// Maximum number of events in a sub-buffer of this size: its records, each with an inserted switch
    /// before it, a loss before all of them, and an unreadable part.
    pub const fn events_max(page_bytes: usize) -> usize {
        2 * Page::entries_max(page_bytes) + 2
    }

    /// Decodes one sub-buffer of the cursor's CPU. Events are in time order, and at most
    /// [`Decoder::events_max`]. Unreadable parts of the sub-buffer are counted, and replaced by a
    /// [`TraceStep::Lost`].
    pub fn page(&mut self, cursor: &mut CpuCursor, bytes: &[u8], events: &mut Vec<TraceEvent>) {
        let page = match Page::parse(bytes, &self.formats.page) {
            Ok(page) => page,
            Err(error) => return self.note_damage(error, cursor, events),
        };
        if page.missed != MissedEvents::Nothing {
            let count = if let MissedEvents::Count(count) = page.missed { count } else { 0 };
            self.counts.loss_count += 1;
            self.counts.lost_count = self.counts.lost_count.saturating_add(count);
            cursor.lost_count = cursor.lost_count.saturating_add(count);
            self.move_to(cursor, page.stamp);
            cursor.running = None;
            events.push(TraceEvent { ticks: cursor.ticks, step: TraceStep::Lost(count) });
        }
        for entry in page.entries() {
            match entry {
                Ok(entry) => self.entry(cursor, &entry, events),
                Err(error) => self.note_damage(error, cursor, events),
            }
        }
    }

    fn note_damage(&mut self, error: PageError, cursor: &mut CpuCursor, events: &mut Vec<TraceEvent>) {
        self.counts.damaged_count += 1;
        self.counts.last_damage = Some(error);
        cursor.running = None;
        events.push(TraceEvent { ticks: cursor.ticks, step: TraceStep::Lost(0) });
    }

    fn move_to(&mut self, cursor: &mut CpuCursor, stamp: u64) {
        if cursor.advance(self.clock.ticks(stamp)) {
            self.counts.backward_count += 1;
        }
    }

    fn entry(&mut self, cursor: &mut CpuCursor, entry: &Entry<'_>, events: &mut Vec<TraceEvent>) {
        let id = entry.record.get(self.formats.type_offset..).and_then(|rest| rest.first_chunk::<2>());
        let Some(id) = id.map(|bytes| u16::from_ne_bytes(*bytes)) else {
            self.counts.short_count += 1;
            return;
        };
        let Some(known) = self.formats.known.get(&id) else {
            self.counts.unknown_count += 1;
            return;
        };
        let running = known.running(entry.record);
        let Some(step) = self.step(id, entry.record) else {
            self.counts.short_count += 1;
            return;
        };
        self.move_to(cursor, entry.stamp);
        self.follow(cursor, running, step, events);
        self.counts.event_count += 1;
        cursor.event_count += 1;
        events.push(TraceEvent { ticks: cursor.ticks, step });
    }

    /// Follows the thread that each event names as the one on the CPU. If it differs from the switches so
    /// far, a switch is missing from the trace.
    fn follow(
        &mut self,
        cursor: &mut CpuCursor,
        running: Option<i32>,
        step: TraceStep,
        events: &mut Vec<TraceEvent>,
    ) {
        if let (Some(last), Some(now)) = (cursor.running, running)
            && last != now
        {
            self.counts.missed_switch_count += 1;
            let step = TraceStep::Switch { from: now, to: now, hold: None };
            events.push(TraceEvent { ticks: cursor.ticks, step });
        }
        cursor.running = match step {
            TraceStep::Switch { to, .. } => Some(to),
            _ => running.or(cursor.running),
        };
    }

    /// Meaning of a record; `None` if it is too short for its fields.
    fn step(&mut self, id: u16, record: &[u8]) -> Option<TraceStep> {
        let known = self.formats.known.get(&id)?;
        let number = || known.number(record);
        Some(match known.says {
            Says::Enters(_, activity) => {
                let activity = activity(number()?);
                self.note_function(activity);
                TraceStep::Enter(activity)
            }
            Says::Calls => {
                let (function, request) = (number()?, known.request(record)?);
                self.note_function(Activity::CallFunction(function));
                TraceStep::Called { function, request }
            }
            Says::Exits(_, activity) => TraceStep::Exit(activity(number()?)),
            Says::EntersIrq => {
                let irq = u32::try_from(number()?).ok()?;
                note_irq(&mut self.names, &mut self.counts, irq, known.text(record));
                TraceStep::Enter(Activity::Irq(irq))
            }
            Says::EntersVector(vector) => TraceStep::Enter(Activity::Vector(vector)),
            Says::ExitsVector(vector) => TraceStep::Exit(Activity::Vector(vector)),
            Says::EntersIpi => TraceStep::Enter(Activity::Vector(self.ipi(number()?))),
            Says::ExitsIpi => TraceStep::Exit(Activity::Vector(self.ipi(number()?))),
            Says::TookNmi => TraceStep::Took(Activity::Nmi, self.clock.ticks_of_ns(non_negative(number()?))),
            Says::Faults => TraceStep::Point(Activity::PageFault),
            Says::Delivers => TraceStep::Point(signal(number()?)),
            Says::Wakes => TraceStep::Wakes(i32::try_from(number()?.cast_signed()).ok()?),
            Says::Switches => {
                let threads = known.threads.as_ref()?;
                switch(&mut self.names, &mut self.counts, threads, known.state(record), record)?
            }
        })
    }

    fn ipi(&self, reason: u64) -> Vector {
        self.formats.ipi_reasons.get(&reason).copied().unwrap_or(Vector::OtherIpi)
    }

    fn note_function(&mut self, activity: Activity) {
        let Some(address) = activity.function() else { return };
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.insert(address);
        } else {
            self.counts.unnamed_count += u64::from(!self.functions.contains(&address));
        }
    }
}

/// A signed number of nanoseconds; negative ones count as 0.
fn non_negative(number: u64) -> u64 {
    u64::try_from(number.cast_signed()).unwrap_or(0)
}

fn note_irq(names: &mut TraceNames, counts: &mut DecoderCounts, irq: u32, name: Option<&[u8]>) {
    let Some(name) = name else { return };
    if names.irqs.get(&irq).is_some_and(|known| known.as_bytes() == name) {
        return;
    }
    if names.irqs.len() < IRQS_MAX || names.irqs.contains_key(&irq) {
        names.irqs.insert(irq, printable(name));
    } else {
        counts.unnamed_count += 1;
    }
}

fn switch(
    names: &mut TraceNames,
    counts: &mut DecoderCounts,
    threads: &Threads,
    state: Option<u64>,
    record: &[u8],
) -> Option<TraceStep> {
    let (mut pids, mut priorities) = ([0; 2], [0; 2]);
    for ((thread, pid), priority) in threads.iter().zip(&mut pids).zip(&mut priorities) {
        *pid = i32::try_from(thread.pid.number(record)?.cast_signed()).ok()?;
        let prio = i32::try_from(thread.prio.number(record)?.cast_signed()).ok()?;
        *priority = prio;
        let comm = thread.comm.text(record)?;
        if names.threads.len() >= THREADS_MAX && !names.threads.contains_key(pid) {
            counts.unnamed_count += 1;
            continue;
        }
        // The latest name: programs rename their threads, and numbers are reused.
        let name = names.threads.entry(*pid).or_default();
        name.prio = prio;
        if name.comm.as_bytes() != comm {
            name.comm = printable(comm);
        }
    }
    let [from, to] = pids;
    let hold = state.filter(|_| from != 0).and_then(|state| hold(state, priorities, to == 0));
    Some(TraceStep::Switch { from, to, hold })
}

/// Returns the reason that a thread that leaves in this state cannot run (kernel: include/linux/sched.h, TASK_REPORT).
/// Bits above the lowest eight mean that it was preempted.
fn hold(state: u64, [prio, next_prio]: [i32; 2], is_idle_next: bool) -> Option<Hold> {
    let is = |bits: u64| state & bits != 0;
    match () {
        () if is(0x04) => Some(Hold::Stopped),
        () if is(0x08) => Some(Hold::Traced),
        // It ended.
        () if is(0x30) => None,
        () if is(0xff) => Some(Hold::Blocked),
        () if prio < ORDINARY_PRIO && (is_idle_next || next_prio >= ORDINARY_PRIO) => Some(Hold::Limit),
        () => is_idle_next.then_some(Hold::Quota),
    }
}

/// Text from the kernel or from a program that named itself: invalid and control characters are replaced.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Hold, hold};

    /// States as 4.14 to 6.18 write them: 0x100 marks a thread that was preempted, 0x800 did before.
    #[test]
    fn states_tell_why_a_thread_leaves() {
        let (fifo, nice, idle) = (98, 120, 120);
        for (state, priorities, is_idle_next, expected) in [
            (0x100, [fifo, 40], false, None),
            (0x800, [nice, nice], false, None),
            (0, [nice, nice], false, None),
            (0x100, [fifo, nice], false, Some(Hold::Limit)),
            (0, [-1, nice], false, Some(Hold::Limit)),
            (0, [fifo, idle], true, Some(Hold::Limit)),
            (0, [nice, idle], true, Some(Hold::Quota)),
            (1, [nice, idle], true, Some(Hold::Blocked)),
            (2, [fifo, nice], false, Some(Hold::Blocked)),
            (4, [fifo, nice], false, Some(Hold::Stopped)),
            (8, [fifo, idle], true, Some(Hold::Traced)),
            (0x10, [nice, nice], false, None),
            (0x20, [nice, idle], true, None),
        ] {
            assert_eq!(hold(state, priorities, is_idle_next), expected, "{state:#x} {priorities:?}");
        }
    }
}
