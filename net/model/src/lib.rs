//! Network measurements: what to measure, the protocol between both ends, the records, and their figures.
//!
//! Pure: no I/O, no clock, no sockets.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod choose;
pub mod compare;
pub mod onload;
pub mod pingpong;
mod plain;
pub mod sfnt;
pub mod stream;
pub mod tools;
mod words;
pub mod xdp;

pub use plain::plain;
