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
pub use words::capital;

/// The items without those that are equal to an earlier one.
pub fn unique<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for item in items {
        if !unique.contains(&item) {
            unique.push(item);
        }
    }
    unique
}

/// Rounds to a whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}
