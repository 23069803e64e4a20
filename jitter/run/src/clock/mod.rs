//! The counter of a sampler's loop, its frequency, and doubts about it.

mod calibrate;
mod counter;
mod doubts;
mod frequency;
mod perf_page;

pub use counter::{ArchCounter, CounterKind, MonotonicCounter, MonotonicRaw, complete_loads};
pub use doubts::{ClockState, choose};
pub use frequency::{ClockError, Frequency, frequency_of};
pub use lowlat_host::TickScale;

pub use counter::nanoseconds;
pub(crate) use lowlat_host::ticks_between;

#[cfg(target_arch = "x86_64")]
pub(crate) mod cpuid;
