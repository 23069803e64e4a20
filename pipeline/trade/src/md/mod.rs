//! Market data: quotes and their due times.

mod feed;
mod pacer;
mod walk;

pub use feed::{DueQuote, Feed};
pub use pacer::{Lateness, Pacer, PacerStep};
pub use walk::Walk;
