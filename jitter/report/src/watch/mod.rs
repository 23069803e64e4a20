//! A host as it is now: which CPUs are disturbed and by what, and what changed. As a frame of a terminal, as a line of
//! JSON, and as metrics. Pure.
mod cpu_row;
mod event;
mod frame;
mod line;
mod metrics;
mod totals;
mod watcher;

pub use cpu_row::{CpuRow, State};
pub use event::{Event, Level};
pub use frame::{DisplayOptions, Sort, frame, plain_text};
pub use line::Line;
pub use metrics::{classic, open_metrics};
pub use totals::Totals;
pub use watcher::{Settings, Step, Subject, Watch};
