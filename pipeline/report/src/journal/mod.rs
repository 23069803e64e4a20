//! Recordings of the trading pipeline.

pub mod recorded;
pub mod recording;
