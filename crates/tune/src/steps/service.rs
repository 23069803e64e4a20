//! Units of systemd. Run state and enablement are one value ("inactive, disabled"), and so one step, which belongs to
//! the run-time part: at a later boot the unit is disabled and does not run, and the step changes nothing.

use super::Gathering;
use crate::targets::service::Services;
use lowlat_sys::undo::UndoError;

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    unit: &str,
    after: &str,
) -> Result<(), UndoError> {
    gathering.value(change, Services::spec(unit), after)
}
