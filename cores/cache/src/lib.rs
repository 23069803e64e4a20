//! Measurements of cores and caches: which pairs of CPUs to measure, and what the times show.
//!
//! Pure: no I/O, no clock, no threads.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use serde::{Deserialize, Serialize};

pub mod c2c;
pub mod clock;
pub mod clusters;
pub mod finder;
pub mod memory;
pub mod sharing;

lowlat_host::measurement! {
    /// False sharing on a host.
    FalseSharingMeasurement { record: FalseSharing, kind: "false-sharing", command: "cache false-sharing" }
}

/// What was measured of false sharing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FalseSharing {
    /// Its cost on the host.
    Cost(sharing::SharingRecord),
    /// Where a program has it.
    Program(Box<finder::FinderRecord>),
}

impl Default for FalseSharing {
    fn default() -> Self {
        Self::Cost(sharing::SharingRecord::default())
    }
}

/// The value at a share of the sorted values; `None` without values.
pub fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place among the values")]
    let place = (share * last as f64).round() as usize;
    values.get(place).copied()
}
