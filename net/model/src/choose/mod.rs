//! Choice of a waiting mode for a goal.

mod mode;
mod record;
mod study;

pub use mode::Mode;
pub use record::{ChoiceRecord, Goal, ModeRecord, ModeRound, NetChoiceMeasurement};
pub use study::{Choice, ChoiceStudy, ModeStudy};
