//! Events on a CPU according to the kernel's trace: the vocabulary between the readers of trace buffers and
//! the engine that attributes interruptions.
//!
//! Events come from the tracepoints of irq, irq_vectors, softirq, nmi, workqueue, csd, timer, exceptions, ipi,
//! sched_switch and signal_deliver (kernel doc: Documentation/trace/events.rst).
//!
//! Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod clock;
mod dat;
mod decode;
mod events;
mod format;
mod formats;
mod page;
mod sends;
#[cfg(test)]
mod tests;

pub use clock::{ClockPair, TickMap, TraceClock};
pub use dat::TraceFile;
pub use decode::{CpuCursor, Decoder, DecoderCounts, FUNCTIONS_MAX, IRQS_MAX, THREADS_MAX};
pub use events::{TRACEPOINTS, Tracepoint};
pub use format::{EventFormat, Field, FormatError, PageLayout, Place, check_entry_layout};
pub use formats::TraceFormats;
pub use page::{Entries, Entry, MissedEvents, Page, PageError};
pub use sends::{
    Channel, Frames, Level, SEND_EVENTS, Send, SendCursor, SendDecoder, SendEvent, SendFormats, SendStep,
    Targets,
};

use lowlat_host::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that the kernel does on a CPU. Addresses and numbers stand for names until [`TraceNames`] has
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Nmi,
    /// The handler of a device interrupt, by its Linux number.
    Irq(u32),
    /// An interrupt of the processor itself.
    Vector(Vector),
    /// A softirq, by its number (0 HI, 1 TIMER, 2 NET_TX, 3 NET_RX, … 9 RCU).
    Softirq(u8),
    /// A high-resolution timer's function, by its address.
    Hrtimer(u64),
    /// A timer-wheel function, by its address.
    Timer(u64),
    /// A function that another CPU requested to run here, by its address.
    CallFunction(u64),
    /// A tasklet's function, by its address.
    Tasklet(u64),
    /// A function on a workqueue, by its address.
    Work(u64),
    /// Another thread, by its thread ID; 0 is the idle task.
    Thread(i32),
    /// A page fault of the interrupted thread.
    PageFault,
    /// A signal delivered to the interrupted thread, by its number.
    Signal(u8),
    /// The interrupt of a timer that runs this function first, by its address. Made of an interrupt and an
    /// [`Activity::Hrtimer`] in it.
    TimerInterrupt(u64),
    /// The thread may not run, whatever else runs. Made of a [`TraceStep::Switch`].
    Held(Hold),
}

impl Activity {
    /// The address of its function; 0 if an exit event does not name it.
    pub fn function(self) -> Option<u64> {
        match self {
            Self::Hrtimer(function)
            | Self::Timer(function)
            | Self::CallFunction(function)
            | Self::Tasklet(function)
            | Self::Work(function) => Some(function),
            _ => None,
        }
    }
}

/// Reason that a thread that leaves the CPU cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// A signal stopped it (TASK_STOPPED).
    Stopped,
    /// A tracer stopped it (TASK_TRACED).
    Traced,
    /// It waits in the kernel.
    Blocked,
    /// A real-time or deadline thread that could run, and a thread of a lower class or nothing runs: its class's limit.
    Limit,
    /// An ordinary thread that could run, and nothing runs: its control group's quota.
    Quota,
}

/// Interrupts of the processor itself that Linux traces by name (x86: the irq_vectors group; aarch64: ipi_entry).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vector {
    /// The local APIC's timer.
    LocalTimer,
    /// Another CPU requests a reschedule.
    Reschedule,
    /// Another CPU requests a set of CPUs to run a function.
    CallFunction,
    /// Another CPU requests this one to run a function.
    CallFunctionSingle,
    /// Work that was deferred to a separate interrupt.
    IrqWork,
    Thermal,
    /// A threshold of corrected errors was reached.
    Threshold,
    DeferredError,
    /// The local APIC reports an error.
    ErrorApic,
    SpuriousApic,
    PlatformIpi,
    /// An interrupt from another CPU with an unknown purpose (aarch64: any kind).
    OtherIpi,
}

/// One event of a CPU's trace, stamped in ticks of the sampler's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Time in ticks of the samplers' counter.
    pub ticks: u64,
    pub step: TraceStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStep {
    /// An activity starts, on top of whatever ran.
    Enter(Activity),
    /// [`Activity::CallFunction`] starts.
    /// - `request`: address of the request, which identifies its sender; 0 if unknown, or if this CPU requested it
    ///   itself.
    Called { function: u64, request: u64 },
    /// The activity ends. Some exit events do not name what their entry named: they have a softirq's number
    /// but not a timer's function. Such an event ends the innermost activity of that kind, and the value is
    /// 0.
    Exit(Activity),
    /// An activity that is reported only when it ends: it took this many ticks until now (NMI handlers).
    Took(Activity, u64),
    /// An activity of which the kernel reports only the start (page faults, signals).
    Point(Activity),
    /// The scheduler switches from one thread to another. From a thread to itself: it was found running, and
    /// the switch to it is missing from the trace.
    Switch {
        /// ID of the previous thread.
        from: i32,
        /// ID of the next thread; 0 is the idle task.
        to: i32,
        /// Reason that the previous thread cannot run; `None` if it gives way to the next one, or if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Hold>,
    },
    /// The kernel starts to wake a thread, by its ID. What runs on the CPU does not change.
    Wakes(i32),
    /// The buffer overflowed: events are missing before this moment. Their number, or 0 if unknown.
    Lost(u64),
}

/// Names for the numbers and addresses in [`Activity`], collected from the events themselves and, after the
/// run, from the kernel's symbol table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TraceNames {
    /// Device interrupts by number: "nvme0q3".
    pub irqs: BTreeMap<u32, String>,
    /// Threads that ran on a traced CPU.
    pub threads: BTreeMap<i32, ThreadName>,
    /// Kernel functions by address: "vmstat_update".
    pub functions: BTreeMap<u64, String>,
}

/// A thread's name and priority in the trace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThreadName {
    /// The kernel's short name: "kworker/1:2".
    pub comm: String,
    /// Its priority on the scheduler's scale: -1 deadline, 0 to 98 real-time (99 minus the user's number),
    /// 100 to 139 normal (120 plus nice).
    pub prio: i32,
    /// CPUs on which it may run, which are not in the trace; `None` if they were not read, or if it had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_cpus: Option<CpuSet>,
}

/// The names of softirqs by number (kernel: include/linux/interrupt.h).
pub const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// The names of signals by number, from 1 and without their SIG: those of x86 and arm64 (kernel:
/// include/uapi/asm-generic/signal.h). Real-time signals, from 32, have no names.
pub const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];
