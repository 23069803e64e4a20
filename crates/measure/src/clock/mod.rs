//! The counter that a sampler reads in its loop, how fast it ticks, and what makes it doubtful.

mod calibrate;
mod counter;
mod doubts;
mod frequency;
mod perf_page;
mod scale;

pub use counter::{ArchCounter, Counter, CounterKind, MonotonicRaw};
pub use doubts::{ClockState, choose};
pub use frequency::{ClockError, Frequency, FrequencySource, frequency_of};
pub use scale::TickScale;

pub(crate) use counter::ticks_between;

#[cfg(target_arch = "x86_64")]
pub(crate) mod cpuid;
