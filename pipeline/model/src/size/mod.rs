//! Number of strategies that a host carries: predicts tick to order from a few measured costs, and checks it with runs.
//!
//! The model: every CPU, or every set of CPUs that the kernel spreads processes over, is a queue with exponential
//! service (M/M/c). A process that sleeps costs a wake on top of the transfer of a cache line. Waits are added to what
//! was measured of one strategy alone; the 99th percentiles of the parts are added too, which is more than the
//! percentile of their sum, so the prediction errs on the safe side. It leaves out caches that many strategies share,
//! interrupts, and hosts where other processes take CPU time. So it is checked: the prediction is corrected by the
//! error at the checked points, and the [`Answer`] separates the numbers that runs support from those the model
//! predicts.

mod answer;
mod capacity;
mod costs;
mod document;
mod place;
mod predict;

pub use answer::{Answer, Outcome};
pub use capacity::{Capacity, CapacityGoal, CapacityLimit, STRATEGIES_MAX, capacity};
pub use costs::Costs;
pub use document::{CheckedPoint, Fit, HugePages, SizeDocument};
pub use place::{PlacedGroup, Placement, StrategyGroup, place};
pub(crate) use place::{SAME_LLC, nearness};
pub use predict::{Cores, Load, Prediction, predict};
