//! Network measurements as terminal text and HTML. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is not
//! a terminal. Every text from a host is first cleaned of control characters.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod chart;
mod choose;
mod compare;
mod html;
mod log;
mod nics;
mod onload;
mod parts;
mod parts_html;
mod pingpong;
mod stream;

pub use choose::{net_choice_text, view as choice_view};
pub use compare::{net_compare_text, page::view as comparison_view};
pub use log::{sfnt_log_text, sfnt_reference_text};
pub use nics::{Interrupt, NicView, Solarflare, nics_text};
pub use onload::{OnloadStatus, RegisteredInterface, command_line, onload_status_text, procedure_text};
pub use pingpong::pingpong_text;
pub use pingpong::view as pingpong_view;
pub use stream::{stream_text, view as stream_view};
