use super::*;
use crate::testing::TestTree;

/// One structure of an artificial table.
pub(crate) fn structure(kind: u8, handle: u16, fields: &[u8], strings: &[&str]) -> Vec<u8> {
    let mut bytes = vec![kind, u8::try_from(fields.len() + 4).unwrap()];
    bytes.extend(handle.to_le_bytes());
    bytes.extend(fields);
    for text in strings {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    bytes.extend(if strings.is_empty() { &[0, 0][..] } else { &[0] });
    bytes
}

/// An entry point of version 3 with a valid checksum.
pub(crate) fn entry_point_3(major: u8, minor: u8) -> Vec<u8> {
    let mut bytes = vec![0; 0x18];
    bytes[..5].copy_from_slice(b"_SM3_");
    (bytes[0x06], bytes[0x07], bytes[0x08], bytes[0x0A]) = (0x18, major, minor, 1);
    set_sum(&mut bytes, 0x05);
    bytes
}

fn set_sum(bytes: &mut [u8], at: usize) {
    bytes[at] = 0;
    bytes[at] = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg();
}

fn entry_point_2(structures: u16) -> Vec<u8> {
    let mut bytes = vec![0; 0x1F];
    bytes[..4].copy_from_slice(b"_SM_");
    (bytes[0x05], bytes[0x06], bytes[0x07]) = (0x1F, 2, 8);
    bytes[0x10..0x15].copy_from_slice(b"_DMI_");
    bytes[0x1C..0x1E].copy_from_slice(&structures.to_le_bytes());
    set_sum(&mut bytes, 0x04);
    bytes
}

/// The fields of a memory device up to and including the extended configured speed (version 3.3).
struct Device {
    array: u16,
    size: u16,
    extended_size: u32,
    speed: u16,
    configured: u16,
    extended_speed: u32,
    extended_configured: u32,
}

const DEVICE: Device = Device {
    array: 0x1000,
    size: 0x7FFF,
    extended_size: 65_536,
    speed: 3_200,
    configured: 2_933,
    extended_speed: 0,
    extended_configured: 0,
};

impl Device {
    fn fields(&self) -> Vec<u8> {
        let mut at = [0; 0x5C];
        let mut put = |offset: usize, bytes: &[u8]| at[offset..offset + bytes.len()].copy_from_slice(bytes);
        put(0x04, &self.array.to_le_bytes());
        put(0x08, &[72, 0, 64, 0]);
        put(0x0C, &self.size.to_le_bytes());
        put(0x10, &[1, 2, 0x1A]);
        put(0x15, &self.speed.to_le_bytes());
        put(0x17, &[3, 4, 0, 5, 2]);
        put(0x1C, &self.extended_size.to_le_bytes());
        put(0x20, &self.configured.to_le_bytes());
        put(0x22, &[0xB0, 0x04, 0, 0, 0xB0, 0x04]);
        put(0x54, &self.extended_speed.to_le_bytes());
        put(0x58, &self.extended_configured.to_le_bytes());
        at[4..].to_vec()
    }

    fn structure(&self) -> Vec<u8> {
        let strings = ["PROC 1 DIMM 2", "P0 CHANNEL A", "Samsung", "SERIAL42", "M393A4G43AB3-CWE  "];
        structure(kind::MEMORY_DEVICE, 0x1100, &self.fields(), &strings)
    }
}

fn array(handle: u16, usage: u8, slots: u16) -> Vec<u8> {
    let mut fields = vec![3, usage, 6, 0, 0, 0, 0x80, 0xFE, 0xFF];
    fields.extend(slots.to_le_bytes());
    fields.extend((4_u64 << 40).to_le_bytes());
    structure(kind::MEMORY_ARRAY, handle, &fields, &[])
}

/// A host as HPE's firmware describes it.
pub(crate) fn table() -> Vec<u8> {
    let mut bios = vec![1, 2, 0, 0, 3];
    bios.resize(0x14 - 4, 0);
    bios.extend([1, 24, 2, 30]);
    let mut system = vec![1, 2, 0, 3];
    system.extend([0xAB; 16]);
    [
        structure(kind::BIOS, 0, &bios, &["HPE", "A42", "04/29/2020"]),
        structure(kind::SYSTEM, 1, &system, &["HPE", "ProLiant DL385 Gen10 Plus", "CZ-SERIAL"]),
        structure(kind::BOARD, 2, &[1, 2, 0, 3], &["HPE", "DL385 Board", "BOARDSERIAL"]),
        structure(11, 3, &[1], &["OEM-SECRET"]),
        array(0x1000, 3, 32),
        array(0x2000, 5, 1),
        DEVICE.structure(),
        Device { size: 0, ..DEVICE }.structure(),
        Device { array: 0x2000, size: 16, ..DEVICE }.structure(),
        structure(kind::END, 0x3000, &[], &[]),
        structure(kind::BIOS, 9, &[1], &["behind the end"]),
    ]
    .concat()
}

fn host(entry_point: &[u8], table: &[u8]) -> TestTree {
    TestTree::new().file(ENTRY_POINT, entry_point).file(TABLE, table)
}

fn tables(entry_point: &[u8], table: &[u8]) -> Tables {
    Tables::read(&host(entry_point, table).root()).into_known().unwrap()
}

#[test]
fn identity_and_modules_are_decoded() {
    let tables = tables(&entry_point_3(3, 3), &table());
    let firmware = tables.firmware();
    assert_eq!(firmware.smbios_version.text(), "3.3");
    assert_eq!((firmware.bios_vendor.text(), firmware.bios_date.text()), ("HPE", "04/29/2020"));
    assert_eq!(firmware.system_product.text(), "ProLiant DL385 Gen10 Plus");
    assert_eq!(firmware.board.text(), "HPE DL385 Board");
    assert_eq!((firmware.bios_revision.text(), firmware.controller_revision.text()), ("1.24", "2.30"));
    assert_eq!((tables.memory_slots(), tables.memory_capacity_bytes()), (32, Reading::Known(4 << 40)));
    let expected = MemoryModule {
        locator: "PROC 1 DIMM 2".into(),
        bank: "P0 CHANNEL A".into(),
        size_bytes: 64 << 30,
        kind: "DDR4".into(),
        speed_mts: Some(3_200),
        configured_mts: Some(2_933),
        manufacturer: "Samsung".into(),
        part_number: "M393A4G43AB3-CWE".into(),
        ranks: Some(2),
        total_width_bits: Some(72),
        data_width_bits: Some(64),
        voltage_mv_min: Some(1_200),
        voltage_mv_max: None,
        voltage_mv: Some(1_200),
    };
    assert_eq!(tables.memory_modules(), [expected]);
}

#[test]
fn sizes_and_speeds_follow_their_escapes() {
    let module = |device: Device| {
        let bytes = device.structure();
        table::structures(&bytes).next().and_then(|device| memory_device::module(&device))
    };
    let size = |size| module(Device { size, ..DEVICE }).map(|module| module.size_bytes);
    assert_eq!(size(16_384), Some(16 << 30));
    assert_eq!(size(0x8000 | 512), Some(512 << 10));
    assert_eq!((size(0), size(0xFFFF), size(0x8000)), (None, None, None));
    let fast = Device { speed: 0xFFFF, extended_speed: 70_000, configured: 0, ..DEVICE };
    let fast = module(fast).unwrap();
    assert_eq!((fast.speed_mts, fast.configured_mts), (Some(70_000), None));
}

#[test]
fn a_short_structure_of_an_old_version_lacks_only_what_it_lacks() {
    let fields = &DEVICE.fields()[..0x1B - 4];
    let strings = ["A", "B", "C", "D", "E"];
    let mut fields = fields.to_vec();
    fields[0x0C - 4..0x0E - 4].copy_from_slice(&1_024u16.to_le_bytes());
    let bytes = structure(kind::MEMORY_DEVICE, 1, &fields, &strings);
    let module = memory_device::module(&table::structures(&bytes).next().unwrap()).unwrap();
    assert_eq!((module.size_bytes, module.ranks, module.configured_mts), (1 << 30, None, None));
    assert_eq!((module.total_width_bits, module.voltage_mv), (Some(72), None));
    assert_eq!(module.speed_mts, Some(3_200));
}

#[test]
fn numbers_that_firmware_does_not_have_are_absent() {
    let of = |table: &[u8]| tables(&entry_point_3(3, 3), table);
    let mut bios = vec![1, 2, 0, 0, 3];
    bios.resize(0x14 - 4, 0);
    bios.extend([1, 24, 0xFF, 0xFF]);
    let host = of(&structure(kind::BIOS, 0, &bios, &["Dell"])).firmware();
    assert_eq!((host.bios_revision.text(), host.controller_revision.is_absent()), ("1.24", true));
    let small = structure(kind::MEMORY_ARRAY, 1, &[3, 3, 6, 0, 0, 0x40, 0, 0xFE, 0xFF, 4, 0], &[]);
    assert_eq!(of(&small).memory_capacity_bytes(), Reading::Known(4 << 30));
    let silent = structure(kind::MEMORY_ARRAY, 2, &[3, 3, 6, 0, 0, 0, 0x80, 0xFE, 0xFF, 4, 0], &[]);
    assert!(of(&[small, silent].concat()).memory_capacity_bytes().is_absent());
}

#[test]
fn version_2_and_older_entry_points_are_read_and_bad_sums_are_refused() {
    assert_eq!(tables(&entry_point_2(3), &table()).firmware().smbios_version.text(), "2.8");
    assert!(tables(&entry_point_2(3), &table()).memory_modules().is_empty(), "no more than it states");
    let mut old = b"_DMI_".to_vec();
    old.extend([0, 0, 0, 0, 0, 0, 0, 9, 0, 0x24]);
    set_sum(&mut old, 5);
    assert_eq!(tables(&old, &table()).firmware().smbios_version.text(), "2.4");
    let mut bad = entry_point_3(3, 3);
    bad[0x08] += 1;
    assert!(matches!(Tables::read(&host(&bad, &table()).root()), Reading::Unparsable(_)));
}

#[test]
fn tables_that_say_nothing_are_not_hosts_without_memory() {
    let only_bios = structure(kind::BIOS, 0, &[1, 2, 0, 0, 3], &["QEMU", "1", "x"]);
    let described = memory(&host(&entry_point_3(3, 0), &only_bios).root());
    assert!(described.modules.is_absent() && described.module_slots.is_absent());
    let described = memory(&host(&entry_point_3(3, 0), &table()).root());
    assert_eq!(
        (described.modules.into_known().unwrap().len(), described.module_slots),
        (1, Reading::Known(32))
    );
    assert!(memory(&TestTree::new().root()).modules.is_absent());
    assert!(matches!(memory(&host(&entry_point_3(3, 0), &[]).root()).modules, Reading::Unparsable(_)));
}

#[test]
fn redaction_keeps_what_is_read_and_nothing_that_names_the_machine() {
    let kept = redacted(&table());
    let (before, after) = (tables(&entry_point_3(3, 3), &table()), tables(&entry_point_3(3, 3), &kept));
    assert_eq!(after.memory_modules(), before.memory_modules());
    assert_eq!(after.firmware().system_product, before.firmware().system_product);
    assert_eq!(after.firmware().board, before.firmware().board);
    assert_eq!(after.memory_slots(), before.memory_slots());
    let text = String::from_utf8_lossy(&kept);
    for secret in ["SERIAL", "SECRET", "behind"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(!kept.contains(&0xAB), "the UUID is gone");
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let tables = Tables { entry_point: EntryPoint { major: 3, minor: 3, structures_max: 100 }, bytes: bytes.clone() };
        let _ = (tables.memory_modules(), tables.memory_slots(), tables.firmware());
        let _ = (EntryPoint::parse(&bytes), redacted(&bytes));
        for anchor in [&b"_SM3_"[..], b"_SM_", b"_DMI_"] {
            let _ = EntryPoint::parse(&[anchor, &bytes].concat());
        }
    }

    #[test]
    fn a_table_cut_or_changed_anywhere_never_panics(cut in 0usize..900, at in 0usize..900, byte in proptest::num::u8::ANY) {
        let mut bytes = table();
        bytes.truncate(cut);
        if let Some(changed) = bytes.get_mut(at) {
            *changed = byte;
        }
        let tables = Tables { entry_point: EntryPoint { major: 3, minor: 3, structures_max: 100 }, bytes };
        let _ = (tables.memory_modules(), tables.memory_slots(), tables.firmware(), redacted(&tables.bytes));
    }
}
