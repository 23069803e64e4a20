//! Streams of records in shared memory. One process writes a stream; any number read it, each at its own pace; whoever
//! waits for a record is woken for it, and nobody else is.
//!
//! ```text
//! writer --copies a record into--> segment (memfd) <--reads at its own position-- any reader
//!    \--puts its position into--> the interested subscribers' rings, and rings the bells of those that sleep
//! ```
//!
//! * A *segment* is one piece of memory with one writer, for as long as that writer lives. A writer that comes after
//!   it makes a segment of its own: a process that was thought dead and goes on writes where nobody reads any more.
//! * A *record* is at least 64 bytes, begins on a cache line and becomes visible with one store.
//! * A subscriber that is too slow loses what its policy says ([`router::Overrun`]), and is told.
//! * Readers trust nothing: every length and position is checked, and what was overwritten while it was copied is
//!   told apart from what was read.
//!
//! [`layout`] has the bytes of segments, [`interest`], [`inbox`], [`index_ring`] and [`latest`] those of the rest.

mod atomics;
pub mod doorbell;
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
