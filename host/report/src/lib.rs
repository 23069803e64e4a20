//! A host, its role and the purpose of each CPU as terminal text and HTML. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cpu_parts;
pub mod fields;
pub mod hardware;
pub mod html;
pub mod role;
mod shape;
pub mod terminal;

pub use fields::title_and_cpus as host_line;
pub use role::{role_notes, role_text};
pub use terminal::{choice_text, host_diff_text, host_text};
