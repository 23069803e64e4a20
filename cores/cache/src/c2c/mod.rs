//! Latency between cores: the survey of a sample of the pairs, its record, and what differs from the kernel's topology.

mod differences;
mod levels;
mod matrix;
mod places;
mod record;
mod survey;
mod tree;

pub use differences::{Kind, differences, partitions};
pub use matrix::{Matrix, MatrixError};
pub use record::{C2cMeasurement, C2cRecord, Level, Method, PairTime, Prediction, SpotCheck};
pub use survey::{Limits, Missed, Sample, survey};

#[cfg(test)]
mod synthetic;
