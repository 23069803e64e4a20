//! Network measurements.

mod log;

pub use log::{sfnt_log_text, sfnt_reference_text};
