//! systemd units. Run state and enablement are one value ("inactive, disabled") and one step of the run-time
//! part. After a later boot the unit is disabled and not running, so the step changes nothing.

use super::Gathering;
use crate::targets::service::Services;
use lowlat_undo::UndoError;

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    unit: &str,
    after: &str,
) -> Result<(), UndoError> {
    gathering.value(change, Services::spec(unit), after)
}
