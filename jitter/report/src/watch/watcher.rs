//! The state of a watch: the last interval, sums since the start, and the latest events.

use crate::watch::{
    cpu_row::{CpuRow, Judged, Recent, State},
    event::{Event, Events, Level},
    totals::Totals,
};
use lowlat_host::{CpuSet, Reading};
use lowlat_jitter::{
    Cause,
    watch::{Interval, Place, RanThread, Sampled, SampledCpu},
};
use lowlat_plan::verify::Verification;
use lowlat_text::units;
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of events kept.
const EVENTS_MAX: usize = 200;

/// Subject of a watch, which does not change while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    pub host: String,
    pub cpus: CpuSet,
    /// Those that are expected to be quiet.
    pub quiet: CpuSet,
    /// True if the kernel isolates the watched CPUs; otherwise the user named them, or all are watched.
    pub is_isolated: bool,
    /// Length of an interval.
    pub every_ns: u64,
    /// True if threads spin on the CPUs to measure interruptions.
    pub is_sampling: bool,
    /// lowlat's version.
    pub version: String,
}

/// The settings compared with the plan in force.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Settings {
    #[default]
    Unchecked,
    /// No plan is in force.
    NoPlan,
    /// The plan or the host cannot be read.
    Unreadable(String),
    Compared(Box<Verification>),
}

impl Settings {
    pub(crate) fn verification(&self) -> Option<&Verification> {
        match self {
            Self::Compared(verification) => Some(verification),
            _ => None,
        }
    }
}

/// Readings at the end of an interval.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// The end of the interval, milliseconds since 1970.
    pub at_unix_ms: u64,
    pub interval: Interval,
    /// Interruptions of the sampled CPUs; `None` without sampling.
    pub sampled: Option<Sampled>,
    /// The settings, if they were compared again.
    pub settings: Option<Settings>,
    /// Running pipelines: "process 4711 (run monday)".
    pub pipelines: Reading<Vec<String>>,
}

/// A watch of a host.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    pub subject: Subject,
    /// Reason that interruptions have no causes although they are sampled.
    pub no_causes: Option<String>,
    /// The last interval, or an empty one at the start.
    pub last: Step,
    pub interval_count: u64,
    /// The watched CPUs in the last interval.
    pub rows: Vec<CpuRow>,
    /// Threads on quiet CPUs in the last interval with the reason that they run there, intruders first.
    pub threads: Vec<(Place, RanThread)>,
    /// Packets that each interface lost in the last interval, where any were lost.
    pub drops: BTreeMap<String, BTreeMap<String, u64>>,
    /// The settings when they were last compared.
    pub settings: Settings,
    /// Time of that comparison, in milliseconds since 1970.
    pub settings_unix_ms: u64,
    /// The latest events, the newest first; those of one interval in order of their subjects.
    pub events: VecDeque<Event>,
    pub totals: Totals,
    /// The intervals on which the verdicts are based.
    recent: Recent,
}

impl Watch {
    /// A watch before its first interval.
    pub fn new(subject: Subject) -> Self {
        Self { subject, ..Self::default() }
    }

    /// Takes the readings at the end of an interval.
    pub fn take(&mut self, step: Step) {
        let mut events = Events::at(step.at_unix_ms);
        let is_first = self.interval_count == 0;
        let threads = self.placed(&step.interval);
        self.note_intruders(&threads, &mut events);
        self.recent.add(&step.interval);
        let rows = self.rows_of(&step, &threads);
        for row in &rows {
            let before = self.rows.iter().find(|before| before.cpu == row.cpu);
            if let Some(before) = before {
                events.state(before.state, row, step.interval.elapsed_ns);
            }
        }
        note_longest(&rows, &mut events);
        let lost = &step.interval.drops;
        let drops = if is_first { Drops::new() } else { increase(&self.last.interval.drops, lost) };
        for (nic, counters) in &drops {
            events.drops(nic, counters);
        }
        self.note_pipelines(&step, is_first, &mut events);
        if let Some(settings) = step.settings.clone() {
            if let (Some(before), Some(after)) = (self.settings.verification(), settings.verification()) {
                events.settings(before, after);
            }
            (self.settings, self.settings_unix_ms) = (settings, step.at_unix_ms);
        }
        self.totals.add(&step, &rows, &threads);
        for event in events.found.into_iter().rev() {
            self.events.push_front(event);
        }
        self.events.truncate(EVENTS_MAX);
        (self.rows, self.threads, self.drops, self.last) = (rows, threads, drops, step);
        self.interval_count += 1;
    }

    /// Threads with the reason that they run on quiet CPUs, the worst first.
    fn placed(&self, interval: &Interval) -> Vec<(Place, RanThread)> {
        let ran = interval.threads.known().into_iter().flatten();
        let mut placed: Vec<(Place, RanThread)> =
            ran.map(|thread| (thread.place(&self.subject.quiet), thread.clone())).collect();
        placed.sort_by_key(|(place, _)| *place);
        placed
    }

    /// Threads on quiet CPUs that belong elsewhere.
    pub fn intruders(&self) -> impl Iterator<Item = &RanThread> {
        intruders(&self.threads)
    }

    fn note_intruders(&self, threads: &[(Place, RanThread)], events: &mut Events) {
        let was_there = |thread: &RanThread| {
            self.intruders().any(|before| before.tid == thread.tid && before.cpu == thread.cpu)
        };
        for cpu in self.subject.quiet.iter() {
            let new = intruders(threads).filter(|thread| thread.cpu == cpu && !was_there(thread));
            events.intruders(cpu, &new.collect::<Vec<_>>());
        }
    }

    fn rows_of(&self, step: &Step, threads: &[(Place, RanThread)]) -> Vec<CpuRow> {
        let row = |cpu| {
            let counted = step.interval.counted.get(&cpu).map_or(&[][..], Vec::as_slice);
            let sampled = step.sampled.as_ref().map(|sampled| {
                let found = sampled.cpus.iter().find(|one| one.cpu == cpu);
                found.cloned().unwrap_or(SampledCpu { cpu, ..SampledCpu::default() })
            });
            let judged = Judged {
                is_quiet: self.subject.quiet.contains(cpu),
                has_intruder: intruders(threads).any(|thread| thread.cpu == cpu),
                recent_ns: self.recent.elapsed_ns(),
                recent: self.recent.of(cpu),
                read: step.interval.read,
                has_threads: !matches!(step.interval.threads, Reading::Denied | Reading::Unparsable(_)),
            };
            CpuRow::of(cpu, counted, sampled, judged)
        };
        self.subject.cpus.iter().map(row).collect()
    }

    fn note_pipelines(&self, step: &Step, is_first: bool, events: &mut Events) {
        let (Some(before), Some(after)) = (self.last.pipelines.known(), step.pipelines.known()) else {
            return;
        };
        if is_first {
            return;
        }
        for started in after.iter().filter(|run| !before.contains(run)) {
            events.add(Level::Info, "pipeline", format!("started: {started}"));
        }
        for ended in before.iter().filter(|run| !after.contains(run)) {
            events.add(Level::Info, "pipeline", format!("ended: {ended}"));
        }
    }

    /// Number of watched CPUs with each verdict, the worst first, without verdicts that no CPU has.
    pub fn states(&self) -> Vec<(State, usize)> {
        let count = |state| self.rows.iter().filter(|row| row.state == state).count();
        State::WORST_FIRST
            .into_iter()
            .map(|state| (state, count(state)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

pub(crate) fn intruders(threads: &[(Place, RanThread)]) -> impl Iterator<Item = &RanThread> {
    threads.iter().filter(|(place, _)| *place == Place::Intruder).map(|(_, thread)| thread)
}

/// The longest interruption of the interval on any CPU.
fn note_longest(rows: &[CpuRow], events: &mut Events) {
    let longest = rows.iter().filter_map(|row| row.sampled.as_ref()).max_by_key(|sampled| sampled.ns_max);
    let Some(longest) = longest.filter(|sampled| sampled.ns_max > 0) else { return };
    let cause = longest.causes.iter().max_by_key(|cause| cause.ns_max);
    let cause = cause.map_or_else(String::new, |cause| Cause::label(&cause.cause));
    let text = format!("longest interruption {}: {cause}", units::duration(longest.ns_max));
    events.add(Level::Info, format!("CPU {}", longest.cpu), text);
}

/// Counters of lost packets, by interface.
type Drops = BTreeMap<String, BTreeMap<String, u64>>;

/// Counters that increased. One that went back was reset with its driver and counts from zero.
fn increase(before: &Drops, after: &Drops) -> Drops {
    let mut increases = Drops::new();
    for (nic, counters) in after {
        // The counters of a new interface show nothing about the interval.
        let Some(before) = before.get(nic) else { continue };
        for (name, count) in counters {
            let was = before.get(name).copied().unwrap_or(0);
            let by = count.checked_sub(was).unwrap_or(*count);
            if by > 0 {
                increases.entry(nic.clone()).or_default().insert(name.clone(), by);
            }
        }
    }
    increases
}
