//! Which CPUs keep house and which are isolated.

use crate::CpuSet;
use serde::{Deserialize, Serialize};

/// The choice of CPUs, with the steps that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allocation {
    /// CPUs for the kernel, services and interrupts.
    pub housekeeping: CpuSet,
    /// CPUs for trading threads. Empty on a host of one CPU.
    pub isolated: CpuSet,
    /// What was decided and why, one sentence a step.
    pub steps: Vec<String>,
    /// What the user should know: too few CPUs, shared caches, a role that names offline CPUs.
    pub warnings: Vec<String>,
}
