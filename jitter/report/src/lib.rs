//! Interruptions of CPUs, their lengths, rates and causes, as terminal text and HTML; what a host does now, as a frame of a
//! terminal, as JSON and as metrics. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod causes;
pub mod figures;
pub mod html;
pub mod terminal;
mod view;
pub mod watch;

pub use causes::words::stop as stop_text;
pub use figures::JitterRun;
pub use terminal::{JitterTextOptions, LiveCpu, LiveView, explain_text, gate_text, jitter_text, live_lines};
pub use view::view as jitter_view;
