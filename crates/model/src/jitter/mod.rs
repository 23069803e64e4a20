//! Jitter: time taken from user threads, per CPU. The raw record of a measurement and the study of it.

pub mod attribution;
mod blame;
mod cause;
pub mod compare;
mod counters;
pub mod gate;
mod readiness;
mod record;
mod remedy;
mod study;
mod study_causes;
mod tracing_cost;
mod wait;

pub use cause::{
    Cause, CauseKind, CausePart, CauseSource, CauseTotal, Change, CounterDelta, CpuCauses, Explained, Group,
    GroupMember, GroupSize, JitterCauses, JitterGroups, TIMELINE_STEPS_MAX, TimelineStep, TracingCost,
};
pub use counters::{
    CountedTables, Movement, cause_of_irq, cause_of_row, cause_of_softirq, contradictions, steal_ticks,
    timeslices,
};
pub use readiness::{
    BUSY_KEPT_MAX, BusyThread, BusyThreads, CpuClock, ProfileFacts, ReadinessFacts, ReadinessPoint,
    ReadinessState, SwapFacts, judge as judge_readiness,
};
pub use record::{Interruption, JitterCpu, JitterRecord, JitterSecond};
pub use remedy::{RemedyContext, remedy};
pub(crate) use study::lengths_of;
pub use study::{
    CauseShares, CauseStudy, CpuStudy, JitterStudy, Percentile, QUANTILES, Remedy, StudyError, TotalStudy,
    study,
};
pub use study_causes::study_with;
pub use tracing_cost::ROUNDS_MIN;
