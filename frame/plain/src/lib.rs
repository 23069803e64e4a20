//! Text from outside, made safe to print, and the labels of documents. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod labels;
pub mod printable;

pub use labels::Labels;
