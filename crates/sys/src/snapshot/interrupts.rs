//! Reads InterruptFacts.

use crate::Root;
use lowlat_model::snapshot::InterruptFacts;

pub(super) fn read(_root: &Root) -> InterruptFacts {
    InterruptFacts::default()
}
