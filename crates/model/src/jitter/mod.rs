//! Jitter: time taken from user threads, per CPU. The raw record of a measurement and the study of it.

pub mod attribution;
mod cause;
mod readiness;
mod record;
mod study;

pub use cause::{
    Cause, CauseKind, CausePart, CauseSource, CauseTotal, Change, CounterDelta, CpuCauses, Explained, Group,
    GroupMember, GroupSize, JitterCauses, JitterGroups, TIMELINE_STEPS_MAX, TimelineStep, TracingCost,
};
pub use readiness::{ReadinessPoint, ReadinessState};
pub use record::{Interruption, JitterCpu, JitterRecord, JitterSecond};
pub use study::{
    CauseShares, CauseStudy, CpuStudy, JitterStudy, Percentile, QUANTILES, Remedy, StudyError, TotalStudy,
    study,
};
