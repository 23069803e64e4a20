//! Streams of records in shared memory. One process writes a stream, and any number read it, each at its own
//! pace. A record wakes exactly the processes that wait for it.
//!
//! ```text
//! writer --copies a record into--> segment (memfd) <--reads at its own position-- any reader
//!    \--puts its position into--> the interested subscribers' rings, and rings the bells of those that sleep
//! ```
//!
//! * A *segment* is a piece of memory with one writer, for as long as that writer lives. A succeeding writer
//!   creates a new segment: a process that was believed dead and continues then writes where no reader looks
//!   any more.
//! * A *record* is at least 64 bytes, starts on a cache line and becomes visible with one store.
//! * A subscriber that is too slow loses records as its policy defines ([`router::Delivery`]), and is notified.
//! * Readers trust nothing: every length and position is checked, and a record overwritten while it was copied
//!   is detected.
//!
//! [`layout`] documents the bytes of segments; [`interest`], [`inbox`], [`index_ring`] and [`latest`] document
//! theirs.
#![cfg_attr(lowlat_loom, deny(clippy::disallowed_types))]

mod atomics;
pub mod doorbell;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub mod file_lock;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub mod fork;
#[cfg(not(lowlat_loom))]
pub mod inbox;
pub mod index_ring;
pub mod interest;
pub mod latest;
pub mod layout;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub mod liveness;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub mod passing;
mod prefetch;
pub mod region;
mod relax;
#[cfg(not(lowlat_loom))]
pub mod router;
#[cfg(all(test, lowlat_shuttle))]
mod shuttle_tests;
pub mod stream;
#[cfg(test)]
mod testing;
#[cfg(not(lowlat_loom))]
mod threads;
#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
pub mod waiter;

pub use relax::relax;
