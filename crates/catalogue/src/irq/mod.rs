//! Device interrupts: where they may go and where they do go.

pub(super) mod affinity;
pub(super) mod placement;
