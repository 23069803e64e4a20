//! Jitter: time taken from user threads, per CPU. The raw record of a measurement and the study of it.

mod cause;
pub mod compare;
pub mod gate;
mod readiness;
mod record;
mod remedy;
mod study;
mod study_causes;
mod wait;

pub use cause::{
    Cause, CauseKind, CausePart, CauseSource, CauseTotal, Change, CounterDelta, CpuCauses, Explained, Group,
    GroupMember, GroupSize, JitterCauses, JitterGroups, TIMELINE_STEPS_MAX, TimelineStep, TracingCost,
};
pub use readiness::{ReadinessPoint, ReadinessState};
pub use record::{Interruption, JitterCpu, JitterRecord, JitterSecond};
pub use remedy::{RemedyContext, remedy};
pub(crate) use study::lengths_of;
pub use study::{
    CauseShares, CauseStudy, CpuStudy, JitterStudy, Percentile, QUANTILES, Remedy, StudyError, TotalStudy,
    study,
};
pub use study_causes::study_with;
