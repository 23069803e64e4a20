//! One-way streams of messages at rising rates: messages, records, and which rate to try next.

mod header;
mod record;
mod summary;
mod sweep;

pub use header::{FLAG_ECHO, FLAG_END, HEADER_BYTES, Header};
pub use record::{
    Distribution, LatencyKind, Received, StreamMeasurement, StreamOptions, StreamRecord, StreamRound,
};
pub use summary::RateSummary;
pub use sweep::{Break, RATE_MAX_PER_S, Verdict, next_rate, verdict};
