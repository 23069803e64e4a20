//! Splits the time of a round trip into parts that add up, from the time stamps of both ends.
//!
//! Every part is a difference within one clock, so the clocks of the two hosts need not agree. The wire is what is left
//! of the client's time between its packet's departure and the answer's arrival when the server's own time between
//! arrival and departure is taken away.

mod record;
mod slow;
mod split;
mod stamps;
mod tally;

pub use record::{PartFigures, PartsFacts, SizeParts};
pub use slow::{SlowCause, SlowMessage};
pub use split::{Flaw, PARTS, Part, SUM_TOLERANCE, Split};
pub use stamps::{RoundTrip, Stamps, Wakes};
pub use tally::{Kept, SLOWEST_MAX, Tally};
