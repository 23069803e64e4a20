//! Parameters and results of a run, and its processes.

use super::{Balance, Pins, Stages, WireRecord};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Waiting mode of the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every process spins.
    Fast,
    /// Every process sleeps until it is woken.
    #[default]
    Parked,
    /// Every process spins for as long as that pays, then sleeps.
    Adaptive,
    /// md spins, td and strategies sleep.
    Mixed,
    /// md and td spin, strategies sleep: what the Kungfu report calls mixed.
    PlatformFast,
}

impl Mode {
    /// The modes by word.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("parked", Self::Parked),
        ("fast", Self::Fast),
        ("adaptive", Self::Adaptive),
        ("mixed", Self::Mixed),
        ("platform-fast", Self::PlatformFast),
    ];

    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, mode)| *mode == self).map_or("", |(word, _)| word)
    }
}

/// Parameters of a pipeline run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineParameters {
    /// Number of strategies, each with its own instrument.
    pub strategies: u32,
    /// Quotes per second over all instruments.
    pub rate_per_s: f64,
    pub mode: Mode,
    /// Time for which md publishes, in seconds: [`PipelineParameters::ENDLESS_S`] until the run is stopped, and in its
    /// record the time in which its quotes were due.
    pub duration_s: f64,
    /// CPUs by role, those of [`PINNED`](super::ProcessRole::PINNED); `platform` makes md and td one process. Roles
    /// that are not named go where the kernel puts them.
    pub pins: Pins,
    /// The CPU of the strategy host that runs all strategies in one process; `None`: a process each.
    pub host_core: Option<u32>,
    /// True if memory may come from the reserved pool of huge pages.
    pub may_use_huge_pages: bool,
    /// True if md has a thread for each instrument, as in the Kungfu report. They sleep until their quotes are due,
    /// whatever the mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_md_threads: bool,
    /// CPU time that each strategy computes per quote before its order, ns, beside what the built-in strategy takes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub strategy_cost_ns: u64,
}

impl PipelineParameters {
    /// Duration of a run that publishes until it is stopped: 31 years.
    pub const ENDLESS_S: f64 = 1e9;

    /// True if md publishes until the run is stopped.
    pub fn is_endless(&self) -> bool {
        self.duration_s >= Self::ENDLESS_S
    }
}

/// Handling of quotes that a strategy is too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuoteOverrun {
    /// They are lost to it, and it learns how many.
    #[default]
    Gap,
    /// It gets the latest of each instrument.
    Conflate,
}

/// What fills the orders that td answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilledBy {
    /// Nothing: each is filled at once and whole, at its own price, to measure latency.
    #[default]
    AtOnce,
    /// The quotes of the run.
    Quotes,
}

/// Parameters of the simulated book.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BookOptions {
    /// Time from td's read of a request until it arrives at the exchange, ns.
    pub latency_ns: u64,
    /// Part of a quoted size that orders can take, in thousandths.
    pub depth_per_mille: u32,
    /// Part of a quoted size that is ahead of an order which joins its price, in thousandths.
    pub queue_per_mille: u32,
}

/// Limits of a strategy's orders; those that are `None` do not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OrderLimits {
    /// Largest distance of an order's price from the middle of the last quote, in thousandths of it.
    pub price_deviation_max_per_mille: Option<u32>,
    /// Quantity of one order.
    pub quantity_max: Option<u32>,
    /// Position in an instrument, if all open orders of a side were filled.
    pub position_max: Option<u32>,
    pub open_orders_max: Option<u32>,
    /// New orders and replaces in a second.
    pub orders_per_s_max: Option<u32>,
}

/// Recorded ticks that md publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTicks {
    /// CSV file.
    pub file: String,
    /// Speed of the replay, as a multiple of the recorded one: "x1".
    pub speed: String,
}

/// A recording that a run takes its quotes and its time from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedRecording {
    /// Its folder.
    pub folder: String,
    /// Speed as a multiple of the recorded one, such as "10"; `None`: as fast as the processes work, in steps.
    pub speed: Option<String>,
    /// Number of instruments: one more than the largest recorded number.
    pub instruments: u32,
    /// When its first quote was written, in its clock, ns.
    pub first_ns: u64,
    /// Nodes that must have joined before the first quote.
    pub awaited: Vec<String>,
}

/// Options of a run beside its load.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PipelineOptions {
    /// Name under which other processes find its master; `None`: a private one.
    pub name: Option<String>,
    pub overrun: QuoteOverrun,
    /// Store of cached; `None`: cached does not run.
    pub cached_store: Option<String>,
    /// Processes that read every record and keep nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub followers: u32,
    /// Scenario that md publishes, a JSON file; `None`: quotes at the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// Time between the starts of two strategies, ms.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_interval_ms: u32,
    /// Folder of the recording; `None`: nothing is recorded.
    pub recording: Option<String>,
    /// Further arguments of its recorder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorder_arguments: Vec<String>,
    /// The CPU from which md's subscribers are woken; none: md wakes them itself.
    pub wake_core: Option<u32>,
    #[serde(default)]
    pub filled_by: FilledBy,
    #[serde(default)]
    pub book: BookOptions,
    #[serde(default)]
    pub limits: OrderLimits,
    /// Recorded ticks, with an instrument for each strategy; `None` if md simulates the quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticks: Option<RecordedTicks>,
    /// Recording that the run takes its quotes and its time from; `None` in any other run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayedRecording>,
    /// Feed that md reads, such as "udp:239.1.1.1:5000"; `None` if md makes the quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed: Option<String>,
    /// Interface on which md joins the feed's group; `None`: the one of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_interface: Option<String>,
    /// Receive buffer of md's socket, bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feed_buffer_bytes: Option<u64>,
    /// Symbols of ITCH with an instrument each; empty: the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<String>,
    /// Channel of the capture that `ticks` names; `None`: its only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// Exchange to which td sends the orders, such as "tcp:10.0.0.1:5001"; `None` if td answers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Quotes per order of a strategy; `None`: an order for each quote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quotes_per_order: Option<u32>,
    /// Memory that all nodes may share, bytes; none: most of what is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes_max: Option<u64>,
    /// Instruments of its market; `None`: one for each strategy, or those of the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instruments: Option<u32>,
    /// Group whose members may join, by its id; `None`: only the run's user and root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

impl PipelineOptions {
    /// Instruments of the market of a run with these parameters.
    pub fn instruments(&self, parameters: &PipelineParameters) -> u32 {
        let replayed = self.replay.as_ref().map(|replay| replay.instruments);
        replayed.or(self.instruments).unwrap_or(parameters.strategies)
    }

    /// True in a run over a recording that goes as fast as its processes work.
    pub fn is_stepped(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| replay.speed.is_none())
    }
}

/// What a user asked of a run: every process of it gets all of this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineRequest {
    pub parameters: PipelineParameters,
    pub options: PipelineOptions,
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Resources that one process, or all processes of a role, used.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessUse {
    /// `master`, `cached`, `follower`, `recorder`, `md`, `td`, `platform`, `strategies`, `host`.
    pub role: String,
    /// Number of processes in this row.
    pub processes: u32,
    /// CPU time in user and kernel mode, seconds.
    pub cpu_s: f64,
    /// Switches away because it waited (/proc/PID/status).
    pub voluntary_switches: u64,
    /// Switches away because something else ran.
    pub involuntary_switches: u64,
    /// Page faults without a disk, while quotes were published.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
    /// Memory that only one process uses, of the one with most of it: own pages and page tables, bytes. `None` if
    /// unknown, as in records of an earlier lowlat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_bytes_max: Option<u64>,
}

/// Results of one pipeline run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineRecord {
    pub parameters: PipelineParameters,
    /// Time during which quotes were published, in seconds.
    pub measured_s: f64,
    /// From the start of the first process until all had joined, seconds. 0 in a record of an earlier lowlat.
    pub ready_s: f64,
    /// True if it was stopped before md had published its schedule.
    pub is_cut_short: bool,
    /// Quotes that the schedule held.
    pub ticks_scheduled: u64,
    /// Number of quotes that md published.
    pub ticks_published: u64,
    /// Number of orders that strategies sent.
    pub orders: u64,
    /// Orders that td answered with accepted or rejected. Equal to `orders` when nothing went wrong.
    pub answers: u64,
    /// Number of orders that td rejected.
    pub rejected: u64,
    /// Quotes or orders that a reader lost because it was too slow.
    pub lost: u64,
    /// Wakes: a publisher found a sleeping reader and woke it.
    pub wakes: u64,
    /// Times that the safety net had to wake a reader. Must be 0.
    pub missed_wakes: u64,
    /// Processes that died and were started again.
    pub restarts: u64,
    pub stages: Stages,
    /// Feed, gateway and tick to trade; `None` in a run without either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireRecord>,
    /// Resources that processes used, a row per role.
    pub uses: Vec<ProcessUse>,
    /// Time over which that was counted, seconds: from before the first quote until orders had come to rest. 0 in a
    /// record of an earlier lowlat, which did not record it.
    pub uses_s: f64,
    /// CPU time of everything else on the machine in that time (/proc/stat, in steps of 10 ms), seconds. `None` if
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_cpu_s: Option<f64>,
    /// Memory that was actually allocated, by kind of page (`2 MiB pages of the pool`, …), bytes.
    pub backing_bytes: BTreeMap<String, u64>,
    /// Runs of other pipelines that started during this one: "process 4711 (run a)". Its warnings name them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs_beside: Vec<String>,
    /// Processes beside the pipeline (recorder, cached) that ended before it, or with a failure. Its warnings say how.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Balance of what was sent and what arrived.
    pub balance: Balance,
    /// Problems, one sentence each: counts that do not balance, a missed schedule, missed wakes. With any, the command
    /// ends with exit code 1.
    pub findings: Vec<String>,
    /// Doubts about the run, one sentence each.
    pub warnings: Vec<String>,
}

impl PipelineRecord {
    /// True if md could not keep to its schedule; false for a run that was cut short.
    pub fn is_late(&self) -> bool {
        !self.is_cut_short && self.ticks_published < self.ticks_scheduled
    }

    /// True if md published its whole schedule, but much later than it was due: by 5 % of the time, and 250 ms. A feed
    /// has no schedule.
    pub fn is_slow(&self) -> bool {
        let due_s = self.parameters.duration_s;
        let has_schedule = self.wire.as_ref().is_none_or(|wire| wire.feed.is_none());
        has_schedule && !self.is_cut_short && self.measured_s > (due_s * 1.05).max(due_s + 0.25)
    }

    /// True if the schedule was missed in either of these ways.
    pub fn has_missed_schedule(&self) -> bool {
        self.is_late() || self.is_slow()
    }

    /// Quotes per second that md reached; 0 before the second one.
    pub fn reached_per_s(&self) -> f64 {
        if self.measured_s > 0.0 { self.ticks_published as f64 / self.measured_s } else { 0.0 }
    }

    /// CPUs that everything else on the machine kept busy on average, as a number of CPUs; `None` if unknown.
    pub fn others_busy(&self) -> Option<f64> {
        self.others_cpu_s.filter(|_| self.uses_s > 0.0).map(|cpu_s| cpu_s / self.uses_s)
    }

    /// Returns the time by which CPU time is divided to get a share, in seconds.
    pub fn busy_by_s(&self) -> f64 {
        if self.uses_s > 0.0 { self.uses_s } else { self.measured_s }
    }
}

/// One run as a document: the record's fields are at its top level, so that other programs find `stages.t2o.p50_ns`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PipelineDocument {
    /// Always "lowlat-pipeline".
    pub document: String,
    /// Version of this shape. Fields are only ever added; a change of meaning raises it.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// True if the user cut it short.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: lowlat_host::Labels,
    pub options: PipelineOptions,
    #[serde(flatten)]
    pub record: PipelineRecord,
}

impl PipelineDocument {
    /// Current value of the field [`PipelineDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// Value of the field [`PipelineDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-pipeline";
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Processes start and join.
    Joining,
    Publishing,
    /// Orders and answers come to rest, processes end.
    Ending,
}

/// State of a run, reported about once a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub phase: Phase,
    pub joined: u32,
    /// Processes that the run has.
    pub processes: u32,
    /// Time since md may publish, seconds.
    pub elapsed_s: f64,
    pub ticks_published: u64,
    /// Orders that td has read so far.
    pub orders: u64,
    pub lost: u64,
    /// Median of tick to order so far; `None` before there is one.
    pub t2o_p50_ns: Option<u64>,
}
