//! Content and times of md's quotes: a scenario, or recorded ticks.

mod file;
mod schedule;
mod ticks;

pub use file::{INSTRUMENTS_MAX, Scenario};
pub use schedule::{Due, Schedule};
pub use ticks::{Speed, Tick, Ticks};
pub(crate) use ticks::{not_itch, open, read_all, symbols_of, unreadable};
