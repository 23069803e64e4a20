//! Network measurements.

mod html;
mod log;
mod nics;
mod pingpong;
pub mod view;

pub use log::{sfnt_log_text, sfnt_reference_text};
pub use nics::{Interrupt, NicView, Solarflare, nics_text};
pub use pingpong::pingpong_text;
