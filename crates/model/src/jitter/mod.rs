//! Jitter: time taken from user threads, per CPU. The raw record of a measurement and the study of it.

mod record;
mod study;

pub use record::{Interruption, JitterCpu, JitterRecord, JitterSecond};
pub use study::{CpuStudy, JitterStudy, Percentile, QUANTILES, StudyError, TotalStudy, study};
