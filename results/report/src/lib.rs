//! Result documents of lowlat as terminal text and as one HTML page. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is not
//! a terminal. Every text from a host is first cleaned of control characters.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod assess;
mod compare;
mod fleet;
mod render;
mod side_by_side;

pub use assess::{
    brief::{Outcome, brief},
    html::html,
    measurements::{all_warnings, jitter_run, jitter_text},
    summary::summary,
};
pub use compare::terminal::comparison_text;
pub use fleet::{html::fleet_html, text::fleet_text};
pub use render::{Named, documents_html, documents_text, markdown::documents_markdown};
pub use side_by_side::{html::side_by_side_html, side_by_side_text};
