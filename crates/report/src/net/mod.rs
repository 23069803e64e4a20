//! Network measurements.

mod html;
mod log;
mod nics;
mod onload;
mod pingpong;
pub mod view;

pub use log::{sfnt_log_text, sfnt_reference_text};
pub use nics::{Interrupt, NicView, Solarflare, nics_text};
pub use onload::{OnloadStatus, command_line, onload_status_text, procedure_text};
pub use pingpong::pingpong_text;
