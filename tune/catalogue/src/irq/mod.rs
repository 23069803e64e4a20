//! Device interrupts: the CPUs on which they may and do run.

pub(super) mod affinity;
pub(super) mod placement;
