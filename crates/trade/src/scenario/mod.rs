//! What md publishes and when: a scenario, or recorded ticks.

mod decimal;
mod file;
pub mod input;
mod schedule;
mod ticks;

pub use file::{INSTRUMENTS_MAX, Scenario};
pub use schedule::{Due, Schedule};
pub use ticks::{Speed, Tick, Ticks, TicksError};
pub(crate) use ticks::{open, read_all, symbols_of};
