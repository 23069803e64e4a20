//! The profile that TuneD runs.

use super::gathering::Gathering;
use lowlat_sys::undo::{Comparison, TargetSpec, UndoError};

/// Profile and mode, as one value: "lowlat manual".
pub(super) fn profile(gathering: &mut Gathering<'_>, change: usize, after: &str) -> Result<(), UndoError> {
    let spec = TargetSpec {
        kind: "tuned-profile".to_owned(),
        name: "tuned".to_owned(),
        comparison: Comparison::Words,
    };
    gathering.value(change, spec, after)
}
