//! Runs of the trading pipeline and recordings of its streams, as terminal text and HTML pages. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is not
//! a terminal. Every text from a host is first cleaned of control characters.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod journal;
mod pipeline;

pub use journal::{recorded::*, recording::*};
pub use pipeline::{
    html::{matrix_html, run_html},
    matrix_warnings,
    terminal::{
        exchange_html, exchange_text, load_words, matrix_not_run_text, matrix_plan_text, matrix_text,
        nodes_text, pipeline_live_lines, pipeline_text, size_html, size_text,
    },
};
