//! What md publishes and when: the Kungfu report's scenarios, scenarios of one's own, and recorded ticks.

mod catalogue;
mod decimal;
mod file;
pub mod input;
mod schedule;
mod ticks;

pub use catalogue::{
    Case, Cpus, GROUPS, Group, MeanRange, Published, RATES, Rate, SETUPS, STRATEGIES, Setup,
};
pub use file::{INSTRUMENTS_MAX, Scenario};
pub use schedule::{Due, Schedule};
pub use ticks::{Replay, Speed, Tick, Ticks, TicksError};
