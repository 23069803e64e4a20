//! Reads Virtualization.

use crate::Root;
use lowlat_model::snapshot::Virtualization;

pub(super) fn read(_root: &Root) -> Virtualization {
    Virtualization::default()
}
