//! The firmware's own description of the machine: SMBIOS tables, versions 2 and 3 (DMTF DSP0134).
//!
//! The tables come from firmware and are not trusted. Every field is looked up within its structure and every
//! string within its table. The walk ends where the bytes end.

mod entry_point;
mod memory_device;
mod table;

use crate::Root;
use entry_point::EntryPoint;
use lowlat_host::{
    Reading,
    snapshot::{FirmwareFacts, MemoryFacts, MemoryModule},
};
use table::Structure;

/// Files with the entry point and the table; only root can read them.
const ENTRY_POINT: &str = "/sys/firmware/dmi/tables/smbios_entry_point";
const TABLE: &str = "/sys/firmware/dmi/tables/DMI";

/// Types of structures that are read (DSP0134, chapter 7).
mod kind {
    pub(super) const BIOS: u8 = 0;
    pub(super) const SYSTEM: u8 = 1;
    pub(super) const BOARD: u8 = 2;
    pub(super) const MEMORY_ARRAY: u8 = 16;
    pub(super) const MEMORY_DEVICE: u8 = 17;
    pub(super) const END: u8 = 127;
}

/// The tables of one host.
#[derive(Debug, Clone)]
pub struct Tables {
    entry_point: EntryPoint,
    bytes: Vec<u8>,
}

impl Tables {
    pub fn read(root: &Root) -> Reading<Self> {
        let entry_point = root.read_bytes(ENTRY_POINT).and_then(|bytes| {
            let found = EntryPoint::parse(&bytes);
            let expected = "an SMBIOS entry point with a valid checksum";
            Reading::understood(found, ENTRY_POINT, &in_hex(&bytes), expected)
        });
        entry_point.and_then(|entry_point| {
            root.read_bytes(TABLE).and_then(|bytes| {
                let tables = Self { entry_point, bytes };
                if tables.structures().next().is_some() {
                    Reading::Known(tables)
                } else {
                    Reading::unparsable(TABLE, &in_hex(&tables.bytes), "SMBIOS structures")
                }
            })
        })
    }

    /// The identities of BIOS (type 0), system (type 1) and base board (type 2), and the version of the tables: "3.2".
    pub fn firmware(&self) -> FirmwareFacts {
        let parts = [self.text(kind::BOARD, 0x04), self.text(kind::BOARD, 0x05)];
        let board: Vec<String> = parts.into_iter().filter_map(Reading::into_known).collect();
        FirmwareFacts {
            bios_vendor: self.text(kind::BIOS, 0x04),
            bios_version: self.text(kind::BIOS, 0x05),
            bios_date: self.text(kind::BIOS, 0x08),
            bios_revision: self.revision(0x14),
            controller_revision: self.revision(0x16),
            system_vendor: self.text(kind::SYSTEM, 0x04),
            system_product: self.text(kind::SYSTEM, 0x05),
            board: Reading::from_option((!board.is_empty()).then(|| board.join(" "))),
            smbios_version: Reading::Known(format!("{}.{}", self.entry_point.major, self.entry_point.minor)),
            ..FirmwareFacts::default()
        }
    }

    /// A text of the first structure of a type; absent if the structure or the text is missing.
    fn text(&self, kind: u8, offset: usize) -> Reading<String> {
        let text = self.of_kind(kind).next().and_then(|structure| structure.text(offset));
        Reading::from_option(text)
    }

    /// Two bytes of type 0, major and minor; 0xFF in either means that the firmware has no such number.
    fn revision(&self, offset: usize) -> Reading<String> {
        let numbers = self.of_kind(kind::BIOS).next().and_then(|bios| {
            let known = |at| bios.byte(at).filter(|number| *number != 0xFF);
            Some((known(offset)?, known(offset + 1)?))
        });
        Reading::from_option(numbers.map(|(major, minor)| format!("{major}.{minor}")))
    }

    /// Memory modules (type 17). Empty slots and slots of unknown size are left out.
    pub fn memory_modules(&self) -> Vec<MemoryModule> {
        self.system_memory_slots().iter().filter_map(memory_device::module).collect()
    }

    /// Slots for memory modules: the count given by the arrays of system memory (type 16), otherwise the
    /// number of described slots.
    pub fn memory_slots(&self) -> u32 {
        let arrays = self.of_kind(kind::MEMORY_ARRAY).filter(memory_device::is_system_memory);
        let slots: u32 = arrays.filter_map(|array| array.word(0x0D)).map(u32::from).sum();
        if slots > 0 { slots } else { u32::try_from(self.system_memory_slots().len()).unwrap_or(u32::MAX) }
    }

    /// The most memory that all arrays of system memory support (type 16); absent if one does not state it.
    pub fn memory_capacity_bytes(&self) -> Reading<u64> {
        let arrays = self.of_kind(kind::MEMORY_ARRAY).filter(memory_device::is_system_memory);
        let sum = arrays
            .map(|array| memory_device::capacity_bytes(&array))
            .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?));
        Reading::from_option(sum.filter(|bytes| *bytes > 0))
    }

    /// Memory devices, without those of arrays for something else (video memory, flash, cache).
    fn system_memory_slots(&self) -> Vec<Structure<'_>> {
        let others: Vec<u16> = self
            .of_kind(kind::MEMORY_ARRAY)
            .filter(|array| !memory_device::is_system_memory(array))
            .filter_map(|array| array.word(0x02))
            .collect();
        let is_kept = |device: &Structure<'_>| device.word(0x04).is_none_or(|array| !others.contains(&array));
        self.of_kind(kind::MEMORY_DEVICE).filter(is_kept).collect()
    }

    fn of_kind(&self, kind: u8) -> impl Iterator<Item = Structure<'_>> {
        self.structures().filter(move |structure| structure.kind() == kind)
    }

    fn structures(&self) -> impl Iterator<Item = Structure<'_>> {
        table::structures(&self.bytes).take(self.entry_point.structures_max)
    }
}

/// Reads the modules, their slots and the capacity, and nothing else.
pub fn memory(root: &Root) -> MemoryFacts {
    let tables = Tables::read(root);
    let has_slots = |tables: &Tables| tables.memory_slots() > 0;
    // Firmware of virtual machines may leave memory out; that does not mean a host without slots.
    let described = tables.and_then(|tables| Reading::from_option(Some(tables).filter(has_slots)));
    MemoryFacts {
        modules: described.as_ref().map(Tables::memory_modules),
        module_slots: described.as_ref().map(Tables::memory_slots),
        capacity_bytes_max: described.and_then(|tables| tables.memory_capacity_bytes()),
        ..MemoryFacts::default()
    }
}

fn in_hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes: {}", bytes.len(), shown.join(" "))
}

#[cfg(test)]
pub(crate) mod tests;

/// The system's UUID in type 1.
const UUID: std::ops::Range<usize> = 0x08..0x18;

/// Offsets of the string numbers that lowlat reads, by type. Every other string (serial numbers, asset tags,
/// the firmware vendor's own) is not needed.
fn kept_strings(kind: u8) -> Option<&'static [usize]> {
    match kind {
        kind::BIOS => Some(&[0x04, 0x05, 0x08]),
        kind::SYSTEM | kind::BOARD => Some(&[0x04, 0x05]),
        kind::MEMORY_ARRAY => Some(&[]),
        kind::MEMORY_DEVICE => Some(&[0x10, 0x11, 0x17, 0x1A]),
        _ => None,
    }
}

/// The table with only the structures that lowlat reads. Their UUID is zero, and each letter of a string that
/// lowlat does not read is an `x`.
pub fn redacted(table: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    for structure in table::structures(table) {
        if let Some(offsets) = kept_strings(structure.kind()) {
            keep(&structure, offsets, &mut kept);
        }
    }
    kept.extend([kind::END, 4, 0, 0, 0, 0]);
    kept
}

fn keep(structure: &Structure<'_>, offsets: &[usize], kept: &mut Vec<u8>) {
    let start = kept.len();
    kept.extend(structure.formatted());
    if structure.kind() == kind::SYSTEM {
        let uuid = kept.iter_mut().skip(start + UUID.start).take(UUID.len());
        uuid.for_each(|byte| *byte = 0);
    }
    let is_read =
        |number: usize| offsets.iter().any(|at| structure.byte(*at).map(usize::from) == Some(number));
    let mut is_any = false;
    for (number, text) in (1..).zip(structure.strings()) {
        is_any = true;
        if is_read(number) {
            kept.extend(text);
        } else {
            kept.extend(std::iter::repeat_n(b'x', text.len()));
        }
        kept.push(0);
    }
    kept.extend(if is_any { &[0][..] } else { &[0, 0] });
}
