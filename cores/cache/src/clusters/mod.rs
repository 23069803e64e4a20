//! Clusters: what the kernel does with them, what filling one before the next costs, and which placement to use.

mod filling;
mod kernel;
mod record;

pub use filling::{Filling, Level};
pub use kernel::{KernelView, Spreading, kernel_view};
pub use record::{ClustersMeasurement, ClustersRecord, FillFigures, FillRound, FillTime, Job, Side, Verdict};
