//! Round trips between a client and a server.

mod figures;
pub mod parts;
pub mod protocol;
mod record;
mod scenario;
mod sizes;
mod unsound;

pub(crate) use figures::quantile_ns;
pub use figures::{Figures, QUANTILES, Quantile};
pub use record::{
    CONTROL_RATIO_MAX, ControlRow, CpuUse, EndFacts, IrqSuspend, PingpongMeasurement, PingpongRecord,
    Preload, SizeRecord, control_moved, control_ratio,
};
pub use scenario::{Muxer, Scenario, ScenarioError, Transport, Waiting};
pub use sizes::{DATAGRAM_SIZES, STREAM_SIZES, SizesError, parse_sizes};
pub use unsound::{End, Route, Setup, Severity, Unsound, judge};
