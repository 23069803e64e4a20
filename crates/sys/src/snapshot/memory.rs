//! Reads MemoryFacts.

use crate::{Root, smbios};
use lowlat_model::snapshot::MemoryFacts;

pub(super) fn read(root: &Root) -> MemoryFacts {
    let (modules, module_slots) = smbios::memory_modules(root);
    MemoryFacts { modules, module_slots, ..MemoryFacts::default() }
}
