//! Round trips between a client and a server.

mod control;
mod cpu_use;
mod figures;
pub mod parts;
pub mod protocol;
mod record;
mod scenario;
mod sizes;
mod unsound;

pub use control::{CONTROL_RATIO_MAX, control_moved, control_ratio};
pub use cpu_use::CpuUse;
pub use figures::{Figures, QUANTILES, Quantile};
pub use record::{
    ControlRow, EndFacts, IrqSuspend, PingpongMeasurement, PingpongRecord, Preload, SizeRecord,
};
pub use scenario::{Muxer, Scenario, ScenarioError, Transport, Waiting};
pub use sizes::{DATAGRAM_SIZES, STREAM_SIZES, SizesError, parse_sizes};
pub use unsound::{End, Route, Setup, Severity, Unsound, judge};
