//! Network interfaces and Onload.

mod nics;
mod onload;

pub use nics::{Interrupt, NicView, Solarflare, nics_text};
pub use onload::{OnloadStatus, command_line, onload_status_text, procedure_text};
