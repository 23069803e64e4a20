//! Measurements of cores and caches as terminal text and HTML. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is not
//! a terminal. Every text from a host is first cleaned of control characters.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod c2c;
mod clock;
mod clusters;
mod finder;
mod html;
mod launch;
mod memory;
mod sharing;
mod workload;

pub use c2c::c2c_text;
pub use c2c::view as c2c_view;
pub use clock::clock_article;
pub use clusters::clusters_text;
pub use clusters::view as clusters_view;
pub use launch::launch_text;
pub use memory::memory_article;
pub use sharing::false_sharing_article;
pub use workload::{
    Listed, changes_headline, changes_html, changes_table, has_result, list_text, workload_text,
    workload_view,
};
