//! Jitter: time taken from user threads, per CPU. The raw record of a measurement, and its study.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attribution;
mod blame;
mod cause;
mod cells;
mod counters;
pub mod gate;
mod readiness;
mod record;
mod remedy;
mod sender;
mod study;
mod study_causes;
pub mod sysjitter;
mod tracing_cost;
mod wait;
mod warnings;
pub mod watch;
mod within;

pub use cause::{
    Cause, CauseKind, CausePart, CauseSource, CauseTotal, CounterDelta, CpuCauses, Explained, Group,
    GroupMember, GroupSize, JitterCauses, JitterGroups, OwnHolds, TIMELINE_STEPS_MAX, TimelineChange,
    TimelineStep,
};
pub use cells::LengthCells;
pub use counters::{
    Movement, cause_of_irq, cause_of_row, cause_of_softirq, contradictions, steal_ticks, timeslices,
};
pub use gate::{GUIDE_RUN, ReferenceRun};
pub use readiness::{
    BUSY_KEPT_MAX, BusyThread, BusyThreads, FrequencyFacts, ProfileFacts, ReadinessFacts, ReadinessPoint,
    ReadinessState, SwapFacts, judge as judge_readiness,
};
pub use record::{Interruption, JitterCpu, JitterMeasurement, JitterRecord, JitterSecond, LONG_NS, Stop};
pub use remedy::{RemedyContext, origins, remedy};
pub use sender::{Reason, Sender, SenderLevel, SenderStudy, SenderTotal};
pub use study::{
    CauseShares, CauseStudy, CpuStudy, JitterStudy, Percentile, QUANTILES, Remedy, StudyError, TotalStudy,
    lengths_of, study,
};
pub use study_causes::{savings, study_damaged, study_with};
pub use tracing_cost::TracingCost;
pub use warnings::Warning;
