//! Network measurements.

mod log;
mod nics;

pub use log::{sfnt_log_text, sfnt_reference_text};
pub use nics::{Interrupt, NicView, Solarflare, nics_text};
