//! Market data: what is quoted, and when it is due.

mod feed;
mod pacer;
mod walk;

pub use feed::{Due, Feed};
pub use pacer::{Lateness, Pacer, Step};
pub use walk::Walk;
