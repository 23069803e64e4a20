//! TuneD's active profile.

use super::gathering::Gathering;
use crate::targets::tuned_profile::TunedProfile;
use lowlat_undo::UndoError;

/// Prepares profile and mode as one value: "lowlat manual".
pub(super) fn profile(gathering: &mut Gathering<'_>, change: usize, after: &str) -> Result<(), UndoError> {
    gathering.value(change, TunedProfile::spec(), after)
}
