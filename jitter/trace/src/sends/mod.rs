//! Interrupts that CPUs send to each other, from the trace of the senders: what was requested, by which thread, of
//! which CPU, and from where in the kernel.
//!
//! The events are csd_queue_cpu, ipi_send_cpu and ipi_send_cpumask (Linux 6.4), or ipi_raise of older arm64
//! kernels, and the kernel's stack that a trigger writes after each interrupt. sched_process_exit has the
//! names of processes that end before they can be looked up.

mod decode;
mod formats;

pub use decode::{SendCursor, SendDecoder};
pub use formats::{SEND_EVENTS, SendEvent, SendFormats};

/// Action of a CPU, as in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send<'a> {
    /// Time in ticks of the samplers' counter.
    pub ticks: u64,
    /// The thread on the CPU.
    pub thread: i32,
    pub level: Level,
    pub step: SendStep<'a>,
}

/// Activity of a CPU when it sends: a thread's work, or something on top that the thread did not request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Level {
    /// The thread itself, in the kernel.
    #[default]
    Thread,
    Softirq,
    /// A device's or the processor's interrupt.
    Interrupt,
    Nmi,
}

impl Level {
    pub const COUNT: usize = 4;

    /// From the flags that are common to all events (kernel: `TRACE_FLAG_NMI`, `TRACE_FLAG_HARDIRQ`,
    /// `TRACE_FLAG_SOFTIRQ`).
    fn of_flags(flags: u64) -> Self {
        match flags {
            _ if flags & 0x40 != 0 => Self::Nmi,
            _ if flags & 0x08 != 0 => Self::Interrupt,
            _ if flags & 0x10 != 0 => Self::Softirq,
            _ => Self::Thread,
        }
    }
}

/// An event of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendStep<'a> {
    /// A function is queued for another CPU.
    /// - `request`: address of the request, which its execution has as well.
    /// - `callsite`: address in the kernel that requested it.
    Queues { cpu: u32, function: u64, request: u64, callsite: u64 },
    /// An interrupt is about to be sent.
    /// - `targets`: the CPUs that it interrupts.
    /// - `channel`: kind of the interrupt on arrival; `None` if it is not a known one.
    /// - `callsite`: address in the kernel that requested it; 0 if unknown.
    /// - `callback`: address of the function that handles it; 0 if it has none.
    Sends { targets: Targets<'a>, channel: Option<Channel>, callsite: u64, callback: u64 },
    /// A thread, by its ID, is woken or gets another CPU.
    Wakes(i32),
    /// The kernel's stack at the last [`SendStep::Sends`] or [`SendStep::Wakes`] of this level, innermost first.
    Stack(Frames<'a>),
    /// A thread ends; its name.
    Ends(&'a [u8]),
    /// Events are missing between this moment and the one before.
    /// - `since`: time of the last event before the loss; 0 if there is none.
    Lost { since: u64 },
}

/// Kinds of interrupts between CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    Reschedule,
    /// Calls of functions on the receiver.
    Call,
}

impl Channel {
    pub const COUNT: usize = 2;
}

/// The CPUs that an interrupt goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Targets<'a> {
    One(u32),
    /// The bits of a mask in this machine's order of bytes; x86-64 and aarch64 have the lowest first.
    Mask(&'a [u8]),
}

impl Targets<'_> {
    pub fn contains(self, cpu: u32) -> bool {
        match self {
            Self::One(one) => one == cpu,
            Self::Mask(bytes) => {
                let byte = usize::try_from(cpu / 8).ok().and_then(|place| bytes.get(place));
                byte.is_some_and(|byte| byte >> (cpu % 8) & 1 == 1)
            }
        }
    }
}

/// The return addresses of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// Returns the addresses, innermost first.
    pub fn iter(self) -> impl Iterator<Item = u64> + 'a {
        let (words, _) = self.0.as_chunks::<8>();
        words.iter().map(|word| u64::from_ne_bytes(*word))
    }
}
