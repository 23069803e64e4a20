//! Reads FirmwareFacts.

use crate::Root;
use lowlat_model::snapshot::FirmwareFacts;

pub(super) fn read(_root: &Root) -> FirmwareFacts {
    FirmwareFacts::default()
}
