//! Memory devices (type 17) and the arrays that hold them (type 16).

use super::table::Structure;
use lowlat_host::snapshot::MemoryModule;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The lower 31 bits of an extended size or speed count; the highest is reserved.
const EXTENDED: u32 = 0x7FFF_FFFF;

/// Stands for a capacity in the extended field.
const EXTENDED_CAPACITY: u32 = 0x8000_0000;

/// True if the array (type 16) contains system memory, by its "use" field.
pub(super) fn is_system_memory(array: &Structure<'_>) -> bool {
    array.byte(0x05) == Some(0x03)
}

/// The module in a slot; `None` if the slot is empty or its size is unknown.
pub(super) fn module(device: &Structure<'_>) -> Option<MemoryModule> {
    let text = |offset| device.text(offset).unwrap_or_default();
    Some(MemoryModule {
        size_bytes: size_bytes(device)?,
        locator: text(0x10),
        bank: text(0x11),
        kind: device.byte(0x12).map(kind_name).unwrap_or_default(),
        speed_mts: speed_mts(device, 0x15, 0x54),
        manufacturer: text(0x17),
        part_number: text(0x1A),
        ranks: device.byte(0x1B).map(|attributes| u32::from(attributes & 0x0F)).filter(|ranks| *ranks > 0),
        configured_mts: speed_mts(device, 0x20, 0x58),
        total_width_bits: width_bits(device, 0x08),
        data_width_bits: width_bits(device, 0x0A),
        voltage_mv_min: voltage_mv(device, 0x22),
        voltage_mv_max: voltage_mv(device, 0x24),
        voltage_mv: voltage_mv(device, 0x26),
    })
}

/// Capacity that an array (type 16) supports: in KiB, or in the extended field in bytes; `None` if unknown.
pub(super) fn capacity_bytes(array: &Structure<'_>) -> Option<u64> {
    match array.double_word(0x07)? {
        EXTENDED_CAPACITY => array.quad_word(0x0F),
        kib => Some(u64::from(kib) * KIB),
    }
    .filter(|bytes| *bytes > 0)
}

/// 0xFFFF means unknown; zero, that there are no such bits.
fn width_bits(device: &Structure<'_>, offset: usize) -> Option<u32> {
    device.word(offset).filter(|bits| !matches!(*bits, 0 | 0xFFFF)).map(u32::from)
}

/// Returns the voltage in millivolts; zero in the table means unknown.
fn voltage_mv(device: &Structure<'_>, offset: usize) -> Option<u32> {
    device.word(offset).filter(|mv| *mv > 0).map(u32::from)
}

/// In KiB if the highest bit is set, otherwise in MiB; 0x7FFF refers to the extended size, in MiB.
fn size_bytes(device: &Structure<'_>) -> Option<u64> {
    match device.word(0x0C)? {
        0 | 0xFFFF => None,
        0x7FFF => device.double_word(0x1C).map(|size| u64::from(size & EXTENDED) * MIB),
        size if size & 0x8000 != 0 => Some(u64::from(size & 0x7FFF) * KIB),
        size => Some(u64::from(size) * MIB),
    }
    .filter(|size| *size > 0)
}

/// Zero means unknown; 0xFFFF refers to the extended speed.
fn speed_mts(device: &Structure<'_>, offset: usize, extended: usize) -> Option<u32> {
    match device.word(offset)? {
        0xFFFF => device.double_word(extended).map(|speed| speed & EXTENDED),
        speed => Some(u32::from(speed)),
    }
    .filter(|speed| *speed > 0)
}

/// Names of DSP0134, table "Memory Device: Type".
fn kind_name(kind: u8) -> String {
    let name = match kind {
        0x01 => "other",
        0x02 => "unknown",
        0x03 => "DRAM",
        0x07 => "RAM",
        0x0F => "SDRAM",
        0x12 => "DDR",
        0x13 => "DDR2",
        0x14 => "DDR2 FB-DIMM",
        0x18 => "DDR3",
        0x1A => "DDR4",
        0x1B => "LPDDR",
        0x1C => "LPDDR2",
        0x1D => "LPDDR3",
        0x1E => "LPDDR4",
        0x1F => "logical non-volatile",
        0x20 => "HBM",
        0x21 => "HBM2",
        0x22 => "DDR5",
        0x23 => "LPDDR5",
        0x24 => "HBM3",
        0x25 => "MRDIMM",
        other => return format!("type {other:#04x}"),
    };
    name.to_owned()
}
