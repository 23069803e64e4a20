//! Causes of interruptions, as a record carries them.

use super::{Interruption, attribution::IDLE_NAME};
use lowlat_host::{CpuId, Reading};
use serde::{Deserialize, Serialize};

/// What took time from a user thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Cause {
    /// Its kind.
    pub kind: CauseKind,
    /// Its name within the kind: "nvme0q3", "local timer", "RCU", "vmstat_update", "kworker/1:2"; empty where the
    /// kind says it all. A function whose name is not known stands as its address, "0xffffffff81234560".
    pub name: String,
    /// The interrupt's, the thread's or the signal's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<i64>,
    /// A thread's scheduling: "deadline", "real-time 50", "nice 0".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Whether it is lowlat's own doing: its collector, or the work of reading the trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

/// Kinds of causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
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
    /// Function of a timer.
    Timer,
    /// Function that another CPU had run here.
    CallFunction,
    /// Softirq.
    Softirq,
    /// Tasklet's function.
    Tasklet,
    /// Function on a work queue.
    Work,
    /// Another thread.
    Thread,
    /// Page fault.
    PageFault,
    /// Signal that is delivered to the measured thread, its handler included.
    Signal,
    /// The way into the kernel and out of it where nothing is named to which it could belong.
    EntryExit,
    /// No kernel event explains it, and steal time or the SMI count moved on this CPU meanwhile.
    FirmwareOrHypervisor,
    /// No kernel event explains it, and no counter of firmware or hypervisor moved or is there to be read.
    #[default]
    Unexplained,
    /// Events were lost, or nobody looked: nothing can be said.
    NotTraced,
}

impl CauseKind {
    /// Whether the kernel ran: a tracepoint named it.
    pub fn is_kernel(self) -> bool {
        !matches!(self, Self::FirmwareOrHypervisor | Self::Unexplained | Self::NotTraced)
    }

    /// The word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nmi => "NMI",
            Self::Irq => "irq",
            Self::Vector => "vector",
            Self::Hrtimer => "hrtimer",
            Self::Timer => "timer",
            Self::CallFunction => "call function",
            Self::Softirq => "softirq",
            Self::Tasklet => "tasklet",
            Self::Work => "work",
            Self::Thread => "thread",
            Self::PageFault => "page fault",
            Self::Signal => "signal",
            Self::EntryExit => "kernel entry and exit",
            Self::FirmwareOrHypervisor => "firmware or hypervisor",
            Self::Unexplained => "unexplained",
            Self::NotTraced => "not traced",
        }
    }
}

impl Cause {
    /// A cause whose kind says it all.
    pub fn of(kind: CauseKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Whether it is a kernel function of which no more than an address is known, or not even that.
    pub fn is_nameless(&self) -> bool {
        let is_function = matches!(
            self.kind,
            CauseKind::Hrtimer
                | CauseKind::Timer
                | CauseKind::CallFunction
                | CauseKind::Tasklet
                | CauseKind::Work
        );
        let name = self.name.as_str();
        is_function && (name.is_empty() || name.starts_with("0x") || name == "function not known")
    }

    /// For people: "irq 47 nvme0q3", "thread kworker/1:2 (pid 47, nice 0)", "softirq RCU".
    pub fn label(&self) -> String {
        let word = self.kind.word();
        match (self.kind, self.number) {
            (CauseKind::Irq, Some(number)) => format!("{word} {number} {}", self.name).trim_end().to_owned(),
            (CauseKind::Thread, Some(number)) => {
                let priority = self.priority.as_deref().map(|text| format!(", {text}")).unwrap_or_default();
                format!("{word} {} (pid {number}{priority})", self.name)
            }
            // The idle task is no thread that anybody started.
            (CauseKind::Thread, None) if self.name == IDLE_NAME => self.name.clone(),
            (CauseKind::Vector, _) => self.name.clone(),
            _ => format!("{word} {}", self.name).trim_end().to_owned(),
        }
    }
}

/// What a run found out about causes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterCauses {
    /// Where the causes come from.
    pub source: CauseSource,
    /// Why not from a better source; empty when it is the best.
    pub reason: String,
    /// The trace's clock: "x86-tsc", "mono_raw"; empty without a trace.
    pub trace_clock: String,
    /// One per measured CPU, by rising number.
    pub cpus: Vec<CpuCauses>,
    /// Interruptions that hit several CPUs at once; `None` when only one CPU was measured or nothing was traced.
    pub groups: Option<JitterGroups>,
    /// What tracing itself costs; `None` when nothing was traced.
    pub cost: Option<TracingCost>,
}

/// The rungs of the ladder of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CauseSource {
    /// Each interruption against the kernel's trace of that CPU.
    Trace,
    /// What the kernel's counters say ran on each CPU during the run; no single interruption is attributed.
    Counters,
    /// Nobody looked.
    #[default]
    Off,
}

/// The causes on one CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuCauses {
    /// The CPU.
    pub cpu: CpuId,
    /// Interruptions held against the trace.
    pub attributed_count: u64,
    /// Interruptions that could not be: the ring between sampler and collector was full, or the trace could not be read
    /// any more.
    pub ring_lost_count: u64,
    /// Of those attributed, how many held a kernel event.
    pub kernel_count: u64,
    /// Time of those from the kernel's first event to its last, with the way in and out: what happened before and after
    /// (a hypervisor that holds the CPU before it lets the interrupt in) is not the kernel's.
    #[serde(default)]
    pub kernel_ns_total: u64,
    /// Part of [`CpuCauses::kernel_ns_total`] that no event names.
    #[serde(default)]
    pub kernel_unnamed_ns_total: u64,
    /// Causes, the one that took most first. Their `ns_total` add up to the time of the attributed interruptions.
    pub totals: Vec<CauseTotal>,
    /// Trace events of this CPU that were read.
    pub event_count: u64,
    /// Trace events that the kernel threw away because the buffer was full.
    pub event_lost_count: u64,
    /// The longest interruptions with what happened in them, longest first.
    pub worst: Vec<Explained>,
    /// The first interruptions likewise, in time order.
    pub first: Vec<Explained>,
    /// What the kernel's counters say ran on this CPU during the run.
    pub counters: Vec<CounterDelta>,
    /// System-management interrupts during the run, from MSR_SMI_COUNT (Intel only).
    pub smi_count: Reading<u64>,
}

/// What one cause took on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// Interruptions in which it had a part.
    pub count: u64,
    /// Interruptions in which its part was the longest.
    pub main_count: u64,
    /// Time it took, what ran inside of it not counted.
    pub ns_total: u64,
    /// Of that, the way into the kernel and out of it, and the scheduler on the way: time next to it in which nothing
    /// is named.
    #[serde(default)]
    pub entry_exit_ns: u64,
    /// The most it took in one interruption.
    pub ns_max: u64,
}

/// One interruption with what happened in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Explained {
    /// When, and how long.
    #[serde(flatten)]
    pub interruption: Interruption,
    /// Its parts, longest first; they add up to its length.
    pub parts: Vec<CausePart>,
    /// What happened, in time order; the first [`TIMELINE_STEPS_MAX`] steps.
    pub timeline: Vec<TimelineStep>,
    /// Steps beyond those.
    #[serde(default)]
    pub timeline_cut_count: u64,
}

/// Steps of a timeline that are kept.
pub const TIMELINE_STEPS_MAX: usize = 64;

/// A part of an interruption.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CausePart {
    /// What took it.
    pub cause: Cause,
    /// How much, its way in and out counted, what ran inside of it not.
    pub ns: u64,
}

/// One step of an interruption's timeline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimelineStep {
    /// Since the interruption began; negative when clocks differ by a little.
    pub offset_ns: i64,
    /// How many activities it runs on top of.
    pub depth: u8,
    /// What happens.
    pub change: Change,
    /// To which activity.
    pub cause: Cause,
}

/// What happens in a step of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It begins.
    #[default]
    Begins,
    /// It ends.
    Ends,
    /// It happens; how long it takes is not told.
    Happens,
    /// The measured thread has the CPU back.
    Returns,
    /// Events are missing here.
    Lost,
}

/// How far a kernel counter of a CPU moved during the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CounterDelta {
    /// What it counts.
    pub cause: Cause,
    /// By how much it moved.
    pub count: u64,
}

/// Interruptions of several CPUs that began within [`JitterGroups::window_ns`] of each other.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterGroups {
    /// How near to each other.
    pub window_ns: u64,
    /// How many groups of which size, by rising size.
    pub sizes: Vec<GroupSize>,
    /// Pairs of interruptions on two CPUs that would fall so near to each other by chance alone at the rates of this
    /// run; as many groups as this mean nothing.
    pub chance_pair_count: f64,
    /// The groups that took most time over all their CPUs, longest first.
    pub worst: Vec<Group>,
}

/// Groups of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupSize {
    /// CPUs in a group.
    pub cpu_count: u32,
    /// Groups of that size.
    pub count: u64,
}

/// One group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Group {
    /// Its members, by rising time.
    pub members: Vec<GroupMember>,
}

/// One CPU's interruption in a group.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupMember {
    /// The CPU.
    pub cpu: CpuId,
    /// Its interruption.
    #[serde(flatten)]
    pub interruption: Interruption,
    /// Its longest part that says what ran, else its longest.
    pub cause: Cause,
}

/// What tracing costs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct TracingCost {
    /// What one event adds, in nanoseconds: the median over interleaved rounds with tracing on and off.
    pub event_ns: f64,
    /// The lower and upper quartile of the rounds' differences.
    pub event_ns_quartiles: (f64, f64),
    /// Rounds that were compared.
    pub round_count: u32,
}
