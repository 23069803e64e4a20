//! Causes of interruptions, as in a record.

use super::{
    Interruption, Sender, SenderTotal, TracingCost,
    attribution::{ASLEEP_NAME, IDLE_NAME},
};
use lowlat_host::{CpuId, CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Activity that took time from a user thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    pub kind: CauseKind,
    /// Its name within the kind: "nvme0q3", "local timer", "RCU", "vmstat_update", "kworker/1:2"; empty if
    /// the kind is enough. A function with an unknown name has its address, "0xffffffff81234560".
    pub name: String,
    /// Number of the interrupt, thread or signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// A thread's scheduling: "deadline", "real-time 50", "nice 0".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// True if it is lowlat's own work: its collector, or the reading of the trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CauseKind {
    /// Non-maskable interrupt.
    Nmi,
    /// Device interrupt.
    Irq,
    /// Interrupt of the processor itself: local timer, reschedule, call function, irq work, thermal.
    Vector,
    /// Function of a high-resolution timer.
    Hrtimer,
    /// Function of a low-resolution timer.
    Timer,
    /// Function that another CPU requested to run here.
    CallFunction,
    Softirq,
    Tasklet,
    /// Function that a workqueue ran.
    Work,
    /// Thread other than the measured one.
    Thread,
    PageFault,
    /// Signal delivered to the measured thread, including its handler.
    Signal,
    /// The measured thread could not run, whatever else ran at that time: stopped, throttled, blocked.
    Held,
    /// Entry into the kernel and exit from it that belongs to no named activity.
    EntryExit,
    /// No kernel event explains it, and steal time or the SMI count increased on this CPU at the same time.
    FirmwareOrHypervisor,
    /// No kernel event explains it, and no counter of firmware or hypervisor increased or is available.
    #[default]
    Unexplained,
    /// Events were lost, or nothing was traced: the cause is unknown.
    NotTraced,
}

impl CauseKind {
    /// True if the kernel's trace explains it.
    pub fn is_kernel(self) -> bool {
        !matches!(self, Self::FirmwareOrHypervisor | Self::Unexplained | Self::NotTraced)
    }

    pub fn word(self) -> &'static str {
        KINDS[self as usize].1
    }
}

/// Every kind with its word, at the index of its number.
pub(crate) const KINDS: [(CauseKind, &str); 17] = [
    (CauseKind::Nmi, "NMI"),
    (CauseKind::Irq, "irq"),
    (CauseKind::Vector, "vector"),
    (CauseKind::Hrtimer, "hrtimer"),
    (CauseKind::Timer, "timer"),
    (CauseKind::CallFunction, "call function"),
    (CauseKind::Softirq, "softirq"),
    (CauseKind::Tasklet, "tasklet"),
    (CauseKind::Work, "work"),
    (CauseKind::Thread, "thread"),
    (CauseKind::PageFault, "page fault"),
    (CauseKind::Signal, "signal"),
    (CauseKind::Held, "held"),
    (CauseKind::EntryExit, "kernel entry and exit"),
    (CauseKind::FirmwareOrHypervisor, "firmware or hypervisor"),
    (CauseKind::Unexplained, "unexplained"),
    (CauseKind::NotTraced, "not traced"),
];

/// The name of the timer's interrupt. That of one which ran a function has the function too: "local timer (NAME)".
pub(crate) const LOCAL_TIMER: &str = "local timer";

impl Cause {
    pub fn is_local_timer(&self) -> bool {
        self.kind == CauseKind::Vector && self.name.starts_with(LOCAL_TIMER)
    }

    /// The function for which the local timer interrupted.
    pub fn timer_function(&self) -> Option<&str> {
        let function = self.name.strip_prefix(LOCAL_TIMER)?.strip_prefix(" (")?.strip_suffix(')')?;
        self.is_local_timer().then_some(function)
    }

    /// A cause with only a kind.
    pub fn of(kind: CauseKind) -> Self {
        Self { kind, ..Self::default() }
    }

    pub(crate) fn named(kind: CauseKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), ..Self::default() }
    }

    /// True for a kernel function whose name is unknown.
    pub fn is_nameless(&self) -> bool {
        use CauseKind::{CallFunction, Hrtimer, Tasklet, Timer, Work};
        let is_function = matches!(self.kind, Hrtimer | Timer | CallFunction | Tasklet | Work);
        let name = self.name.as_str();
        is_function && (name.is_empty() || name.starts_with("0x") || name == "function not known")
    }

    /// Label for narrow tables: threads without their numbers.
    pub fn short_label(&self) -> String {
        match (self.kind, self.number) {
            (CauseKind::Thread, Some(_)) => format!("{} {}", self.kind.word(), self.name),
            _ => self.label(),
        }
    }

    /// Label for people: "irq 47 nvme0q3", "thread kworker/1:2 (pid 47, nice 0)", "softirq RCU".
    pub fn label(&self) -> String {
        let word = self.kind.word();
        match (self.kind, self.number) {
            (CauseKind::Irq, Some(number)) => format!("{word} {number} {}", self.name).trim_end().to_owned(),
            (CauseKind::Thread, Some(number)) => {
                let priority = self.priority.as_deref().map(|text| format!(", {text}")).unwrap_or_default();
                format!("{word} {} (pid {number}{priority})", self.name)
            }
            // The idle task is not an ordinary thread.
            (CauseKind::Thread, None) if [IDLE_NAME, ASLEEP_NAME].contains(&self.name.as_str()) => {
                self.name.clone()
            }
            (CauseKind::Vector | CauseKind::Held, _) => self.name.clone(),
            _ => format!("{word} {}", self.name).trim_end().to_owned(),
        }
    }
}

/// The causes found in a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JitterCauses {
    pub source: CauseSource,
    /// Reason that no better source was used; empty if the best one was.
    pub reason: String,
    /// The trace's clock: "x86-tsc", "mono_raw"; empty without a trace.
    pub trace_clock: String,
    /// One per measured CPU, in order of their numbers.
    pub cpus: Vec<CpuCauses>,
    /// Interruptions that hit several CPUs at once; `None` if only one CPU was measured or nothing was
    /// traced.
    pub groups: Option<JitterGroups>,
    /// Cost of tracing itself; `None` if nothing was traced.
    pub cost: Option<TracingCost>,
    /// Senders of interrupts to the measured CPUs; `None` if senders were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub senders: Option<Vec<Sender>>,
    /// Reason that senders were not traced; empty if they were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub senders_reason: String,
}

/// Sources of causes, the best one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CauseSource {
    /// Each interruption matched with the kernel's trace of that CPU.
    Trace,
    /// The kernel's counters of what ran on each CPU during the run; single interruptions are not attributed.
    Counters,
    /// No causes were recorded.
    #[default]
    Off,
}

/// The causes on one CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CpuCauses {
    pub cpu: CpuId,
    /// Interruptions matched with the trace.
    pub attributed_count: u64,
    /// Interruptions that could not be matched: the ring between sampler and collector was full, or the trace
    /// could no longer be read.
    pub ring_lost_count: u64,
    /// Whole seconds of the run in which interruptions were counted.
    pub window_count: u64,
    /// Attributed interruptions that contained a kernel event.
    pub kernel_count: u64,
    /// Time of those from the kernel's first event to its last, with entry and exit. Time before and after is
    /// not the kernel's, for example when a hypervisor holds the CPU before it delivers the interrupt.
    pub kernel_ns_total: u64,
    /// Part of [`CpuCauses::kernel_ns_total`] without a name.
    pub kernel_unnamed_ns_total: u64,
    /// Causes, the largest first. Their `ns_total` sum to the time of the attributed interruptions.
    pub totals: Vec<CauseTotal>,
    /// Trace events of this CPU that were read.
    pub event_count: u64,
    /// Trace events that the kernel dropped because the buffer was full.
    pub event_lost_count: u64,
    /// The longest interruptions with their events, longest first.
    pub worst: Vec<Explained>,
    /// The first interruptions with their events, in time order.
    pub first: Vec<Explained>,
    /// Interruptions by the limit of the sampler's own real-time class, which are in no figure of [`crate::JitterCpu`]
    /// but its seconds; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_holds: Option<OwnHolds>,
    /// Interruptions by other CPUs, by their senders; those that took the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<SenderTotal>,
    /// The kernel's counters of what ran on this CPU during the run.
    pub counters: Vec<CounterDelta>,
    /// System-management interrupts during the run, from MSR_SMI_COUNT (Intel only).
    pub smi_count: Reading<u64>,
}

/// Interruptions of one CPU that the run itself caused: the kernel limits the time of a real-time sampler.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OwnHolds {
    pub count: u64,
    pub ns_total: u64,
    /// Their lengths in nanoseconds: HdrHistogram V2, deflated, base64.
    pub histogram: String,
    /// The longest of all other interruptions.
    pub others_ns_max: u64,
}

/// Sum of one cause on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CauseTotal {
    pub cause: Cause,
    /// Number of interruptions that contained it.
    pub count: u64,
    /// Interruptions in which its part was the longest.
    pub main_count: u64,
    /// Time it took, without inner activities.
    pub ns_total: u64,
    /// Part of that for entry into the kernel, exit from it and the scheduler: adjacent time without a name.
    pub entry_exit_ns: u64,
    /// Longest time in one interruption.
    pub ns_max: u64,
    /// For a thread, CPUs on which it may run; `None` if it ended before they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<CpuSet>,
    /// Interruptions with it in the [`CpuCauses::window_count`] whole seconds.
    pub windowed_count: u64,
    /// Sum over these seconds of their squared number: a measure of bursts.
    pub windowed_square_sum: u64,
}

/// One interruption with its events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    #[serde(flatten)]
    pub interruption: Interruption,
    /// Its parts, longest first; they sum to its length.
    pub parts: Vec<CausePart>,
    /// Its events in time order; the first [`TIMELINE_STEPS_MAX`] steps.
    pub timeline: Vec<TimelineStep>,
    /// Number of steps left out of the timeline.
    pub timeline_cut_count: u64,
}

/// Maximum number of steps kept of a timeline.
pub const TIMELINE_STEPS_MAX: usize = 64;

/// A part of an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CausePart {
    pub cause: Cause,
    /// Its time, including entry and exit, without inner activities.
    pub ns: u64,
}

/// One step of an interruption's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TimelineStep {
    /// Time since the start of the interruption; negative if clocks differ slightly.
    pub offset_ns: i64,
    /// Number of activities that it runs on top of.
    pub depth: u8,
    pub change: TimelineChange,
    pub cause: Cause,
    /// Sender on another CPU, as an index into [`JitterCauses::senders`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<usize>,
}

/// The event in a step of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimelineChange {
    #[default]
    Begins,
    Ends,
    /// It happens, with an unknown length.
    Happens,
    /// The measured thread runs again.
    Returns,
    /// Trace events are missing here.
    Lost,
}

/// Increase of a kernel counter of a CPU during the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CounterDelta {
    pub cause: Cause,
    pub count: u64,
}

/// Interruptions of several CPUs that started within [`JitterGroups::window_ns`] of each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JitterGroups {
    /// Maximum distance between their starts.
    pub window_ns: u64,
    /// Number of groups of each size, in order of size.
    pub sizes: Vec<GroupSize>,
    /// Expected pairs of interruptions on two CPUs this close by chance, at the rates of this run. This many
    /// groups mean nothing.
    pub chance_pair_count: f64,
    /// The groups that took the most time over all their CPUs, longest first.
    pub worst: Vec<Group>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupSize {
    pub cpu_count: u32,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its members, in time order.
    pub members: Vec<GroupMember>,
}

/// One CPU's interruption in a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupMember {
    pub cpu: CpuId,
    #[serde(flatten)]
    pub interruption: Interruption,
    /// Its longest named part, otherwise its longest part.
    pub cause: Cause,
}
