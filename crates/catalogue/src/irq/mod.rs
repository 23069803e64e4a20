//! Device interrupts: where they may go, where they go.

pub(super) mod affinity;
pub(super) mod placement;
