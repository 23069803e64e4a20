//! From sub-buffers to events in the sampler's ticks.

use super::{
    Activity, Entry, Missed, Page, PageError, PageLayout, Step, TickMap, TraceEvent, TraceFormats,
    TraceNames, Vector,
    events::{Says, signal},
    formats::{Known, Threads},
};
use std::collections::{BTreeMap, BTreeSet};

/// Threads that get a name at most; later ones stay numbers.
pub const THREADS_MAX: usize = 4_096;
/// Device interrupts that get a name at most.
pub const IRQS_MAX: usize = 4_096;
/// Addresses of functions that are kept for their names at most.
pub const FUNCTIONS_MAX: usize = 4_096;
/// A stamp that is earlier than the one before by less than this (a second or two of any counter) is read as the one
/// before: clocks of that kind are adjusted by little. By more, the counter was set anew.
const BACK_TICKS_MAX: u64 = 1 << 32;

/// Turns the sub-buffers of any number of CPUs into events.
#[derive(Debug)]
pub struct Decoder {
    layout: PageLayout,
    type_offset: usize,
    known: BTreeMap<u16, Known>,
    reasons: BTreeMap<u64, Vector>,
    clock: TickMap,
    names: TraceNames,
    functions: BTreeSet<u64>,
    counts: DecoderCounts,
}

/// What passed a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecoderCounts {
    /// Records that became events.
    pub event_count: u64,
    /// Records of events that are not known, skipped.
    pub unknown_count: u64,
    /// Records of known events that are too short for their fields, skipped.
    pub short_count: u64,
    /// Sub-buffers that could not be read to their end; a [`Step::Lost`] stands for the rest of each.
    pub damaged_count: u64,
    /// Stamps that were earlier than the one before on the same CPU.
    pub backward_count: u64,
    /// Events that the kernel says it overwrote, where it says how many.
    pub lost_count: u64,
    /// Times that the kernel says it overwrote some.
    pub loss_count: u64,
    /// Switches between threads that the kernel did not tell, put in where the first event of another thread shows
    /// them.
    pub missed_switch_count: u64,
    /// Times that a thread, interrupt or function stayed unnamed because the tables are full.
    pub unnamed_count: u64,
    /// The last thing that was wrong with a sub-buffer.
    pub last_damage: Option<PageError>,
}

/// Where the events of one CPU have got to. One per CPU, kept from sub-buffer to sub-buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuCursor {
    ticks: u64,
    event_count: u64,
    lost_count: u64,
    /// The thread on the CPU, once an event has told it.
    running: Option<i32>,
}

impl CpuCursor {
    /// Events of this CPU so far, [`Step::Lost`] not counted.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Events of this CPU that the kernel said it overwrote.
    pub fn lost_count(&self) -> u64 {
        self.lost_count
    }

    /// Moves on to `ticks`, never back; true when they were earlier.
    fn advance(&mut self, ticks: u64) -> bool {
        let is_back = ticks < self.ticks;
        if !is_back || self.ticks - ticks > BACK_TICKS_MAX {
            self.ticks = ticks;
        }
        is_back
    }
}

impl Decoder {
    /// For these formats, with stamps turned into ticks by `clock`.
    pub fn new(formats: &TraceFormats, clock: TickMap) -> Self {
        Self {
            layout: formats.page,
            type_offset: formats.type_offset,
            known: formats.known.clone(),
            reasons: formats.ipi_reasons.clone(),
            clock,
            names: TraceNames::default(),
            functions: BTreeSet::new(),
            counts: DecoderCounts::default(),
        }
    }

    /// From here on stamps are turned into ticks by another map, when a longer base of readings has made it better.
    pub fn set_clock(&mut self, clock: TickMap) {
        self.clock = clock;
    }

    /// Names seen so far. Functions have none here: [`Decoder::functions`] gives the addresses to look up.
    pub fn names(&self) -> &TraceNames {
        &self.names
    }

    /// Addresses of functions seen so far.
    pub fn functions(&self) -> &BTreeSet<u64> {
        &self.functions
    }

    /// What passed so far.
    pub fn counts(&self) -> &DecoderCounts {
        &self.counts
    }

    /// The most events that a sub-buffer of this many bytes can give: its records, each with a switch put in before
    /// it, what was lost before all of them and what could not be read.
    pub const fn events_max(page_bytes: usize) -> usize {
        2 * Page::entries_max(page_bytes) + 2
    }

    /// Decodes one sub-buffer of the CPU that `cursor` belongs to. Events come in rising time; they are never more
    /// than [`Decoder::events_max`]. What can't be read of the sub-buffer is counted, with a [`Step::Lost`] in its place.
    pub fn page(&mut self, cursor: &mut CpuCursor, bytes: &[u8], events: &mut Vec<TraceEvent>) {
        let page = match Page::parse(bytes, &self.layout) {
            Ok(page) => page,
            Err(error) => return self.note_damage(error, cursor, events),
        };
        if page.missed != Missed::Nothing {
            let count = if let Missed::Count(count) = page.missed { count } else { 0 };
            self.counts.loss_count += 1;
            self.counts.lost_count = self.counts.lost_count.saturating_add(count);
            cursor.lost_count = cursor.lost_count.saturating_add(count);
            self.move_to(cursor, page.stamp);
            cursor.running = None;
            events.push(TraceEvent { ticks: cursor.ticks, step: Step::Lost(count) });
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
        events.push(TraceEvent { ticks: cursor.ticks, step: Step::Lost(0) });
    }

    fn move_to(&mut self, cursor: &mut CpuCursor, stamp: u64) {
        if cursor.advance(self.clock.ticks(stamp)) {
            self.counts.backward_count += 1;
        }
    }

    fn entry(&mut self, cursor: &mut CpuCursor, entry: &Entry<'_>, events: &mut Vec<TraceEvent>) {
        let id = entry.record.get(self.type_offset..).and_then(|rest| rest.first_chunk::<2>());
        let Some(id) = id.map(|bytes| u16::from_ne_bytes(*bytes)) else {
            self.counts.short_count += 1;
            return;
        };
        let Some(known) = self.known.get(&id) else {
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

    /// Keeps to the thread that each event names as the one on the CPU: where it is another than the switches so far
    /// say, there was one that the kernel did not tell.
    fn follow(
        &mut self,
        cursor: &mut CpuCursor,
        running: Option<i32>,
        step: Step,
        events: &mut Vec<TraceEvent>,
    ) {
        if let (Some(last), Some(now)) = (cursor.running, running)
            && last != now
        {
            self.counts.missed_switch_count += 1;
            events.push(TraceEvent { ticks: cursor.ticks, step: Step::Switch { from: now, to: now } });
        }
        cursor.running = match step {
            Step::Switch { to, .. } => Some(to),
            _ => running.or(cursor.running),
        };
    }

    /// What a record says; `None` when it is too short for its fields.
    fn step(&mut self, id: u16, record: &[u8]) -> Option<Step> {
        let known = self.known.get(&id)?;
        let number = || known.number(record);
        Some(match known.says {
            Says::Enters(_, activity) => {
                let activity = activity(number()?);
                self.note_function(activity);
                Step::Enter(activity)
            }
            Says::Exits(_, activity) => Step::Exit(activity(number()?)),
            Says::EntersIrq => {
                let irq = u32::try_from(number()?).ok()?;
                note_irq(&mut self.names, &mut self.counts, irq, known.text(record));
                Step::Enter(Activity::Irq(irq))
            }
            Says::EntersVector(vector) => Step::Enter(Activity::Vector(vector)),
            Says::ExitsVector(vector) => Step::Exit(Activity::Vector(vector)),
            Says::EntersIpi => Step::Enter(Activity::Vector(self.ipi(number()?))),
            Says::ExitsIpi => Step::Exit(Activity::Vector(self.ipi(number()?))),
            Says::TookNmi => Step::Took(Activity::Nmi, self.clock.ticks_of_ns(non_negative(number()?))),
            Says::Faults => Step::Point(Activity::PageFault),
            Says::Delivers => Step::Point(signal(number()?)),
            Says::Switches => {
                let threads = known.threads.as_ref()?;
                switch(&mut self.names, &mut self.counts, threads, record)?
            }
        })
    }

    fn ipi(&self, reason: u64) -> Vector {
        self.reasons.get(&reason).copied().unwrap_or(Vector::OtherIpi)
    }

    fn note_function(&mut self, activity: Activity) {
        let (Activity::Hrtimer(address)
        | Activity::Timer(address)
        | Activity::CallFunction(address)
        | Activity::Tasklet(address)
        | Activity::Work(address)) = activity
        else {
            return;
        };
        if self.functions.contains(&address) {
            return;
        }
        if self.functions.len() < FUNCTIONS_MAX {
            self.functions.insert(address);
        } else {
            self.counts.unnamed_count += 1;
        }
    }
}

/// A signed number of nanoseconds; less than none counts as none.
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
    record: &[u8],
) -> Option<Step> {
    let mut pids = [0; 2];
    for (thread, pid) in threads.iter().zip(&mut pids) {
        *pid = i32::try_from(thread.pid.number(record)?.cast_signed()).ok()?;
        let prio = i32::try_from(thread.prio.number(record)?.cast_signed()).ok()?;
        let comm = thread.comm.text(record)?;
        if names.threads.len() >= THREADS_MAX && !names.threads.contains_key(pid) {
            counts.unnamed_count += 1;
            continue;
        }
        // The name as it is now: programs rename their threads, and numbers are used again.
        let name = names.threads.entry(*pid).or_default();
        name.prio = prio;
        if name.comm.as_bytes() != comm {
            name.comm = printable(comm);
        }
    }
    let [from, to] = pids;
    Some(Step::Switch { from, to })
}

/// Text of the kernel or of a program that named itself: what is no text or would move a cursor is replaced.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}
