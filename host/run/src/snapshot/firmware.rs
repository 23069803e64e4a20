//! Reads the firmware's identity and boot mode.

use crate::{Root, smbios::Tables};
use lowlat_host::{Reading, snapshot::FirmwareFacts};

/// The global variable of the UEFI specification: four bytes of attributes, then 0 or 1.
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";

pub(super) fn read(root: &Root) -> FirmwareFacts {
    let tables = Tables::read(root).map(|tables| tables.firmware());
    // Only root can read the tables; the kernel exposes a few of their strings to all users.
    let text = |of: fn(&FirmwareFacts) -> &Reading<String>, names: &[&str]| {
        tables.as_ref().and_then(|facts| of(facts).clone()).or(|| shown_to_everyone(root, names))
    };
    FirmwareFacts {
        bios_vendor: text(|facts| &facts.bios_vendor, &["bios_vendor"]),
        bios_version: text(|facts| &facts.bios_version, &["bios_version"]),
        bios_date: text(|facts| &facts.bios_date, &["bios_date"]),
        bios_revision: text(|facts| &facts.bios_revision, &["bios_release"]),
        controller_revision: text(|facts| &facts.controller_revision, &["ec_firmware_release"])
            .or(|| ipmi_revision(root)),
        system_vendor: text(|facts| &facts.system_vendor, &["sys_vendor"]),
        system_product: text(|facts| &facts.system_product, &["product_name"]),
        board: text(|facts| &facts.board, &["board_vendor", "board_name"]),
        smbios_version: tables.as_ref().and_then(|facts| facts.smbios_version.clone()),
        is_uefi: is_uefi(root),
        secure_boot: secure_boot(root),
        iommu_count: iommu_count(root),
    }
}

/// Files of /sys/class/dmi/id, those with text joined by a space.
fn shown_to_everyone(root: &Root, names: &[&str]) -> Reading<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut missing = Reading::Absent;
    for name in names {
        match root.read(&format!("/sys/class/dmi/id/{name}")) {
            Reading::Known(text) => {
                texts.extend(Some(text.trim().to_owned()).filter(|text| !text.is_empty()));
            }
            other => missing = missing.or(|| other),
        }
    }
    if texts.is_empty() { missing } else { Reading::Known(texts.join(" ")) }
}

/// The firmware of the management controller behind the first IPMI interface (Documentation/driver-api/ipmi.rst).
fn ipmi_revision(root: &Root) -> Reading<String> {
    root.glob("/sys/devices/platform/ipmi_bmc.*/firmware_revision")
        .first()
        .map_or(Reading::Absent, |path| root.read(path))
}

fn is_uefi(root: &Root) -> Reading<bool> {
    if root.exists("/sys/firmware/efi") {
        Reading::Known(true)
    } else if root.exists("/sys/firmware") {
        Reading::Known(false)
    } else {
        Reading::Absent
    }
}

/// True if the firmware starts only signed programs.
pub fn secure_boot(root: &Root) -> Reading<bool> {
    root.read_bytes(SECURE_BOOT).and_then(|bytes| match bytes[..] {
        [_, _, _, _, 0] => Reading::Known(false),
        [_, _, _, _, 1] => Reading::Known(true),
        _ => Reading::unparsable(
            SECURE_BOOT,
            &format!("{bytes:02x?}"),
            "four bytes of attributes, then 0 or 1",
        ),
    })
}

fn iommu_count(root: &Root) -> Reading<u32> {
    root.list("/sys/class/iommu").map(|names| u32::try_from(names.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{smbios::tests as tables, testing::TestTree};

    #[test]
    fn the_tables_precede_the_strings_for_everyone() {
        let tree = TestTree::new()
            .file("/sys/firmware/dmi/tables/smbios_entry_point", tables::entry_point_3(3, 2))
            .file("/sys/firmware/dmi/tables/DMI", tables::table())
            .file("/sys/class/dmi/id/sys_vendor", "another vendor\n");
        let facts = read(&tree.root());
        assert_eq!((facts.system_vendor.text(), facts.smbios_version.text()), ("HPE", "3.2"));
        assert_eq!(facts.is_uefi, Reading::Known(false));
    }

    #[test]
    fn strings_for_everyone_are_used_instead() {
        let tree = TestTree::of(&[
            ("/sys/class/dmi/id/sys_vendor", "HPE\n"),
            ("/sys/class/dmi/id/board_vendor", "HPE\n"),
            ("/sys/class/dmi/id/board_name", "DL385\n"),
            ("/sys/class/dmi/id/bios_date", "\n"),
            ("/sys/class/dmi/id/bios_release", "1.24\n"),
            ("/sys/devices/platform/ipmi_bmc.0/firmware_revision", "2.30\n"),
        ]);
        let facts = read(&tree.root());
        assert_eq!((facts.system_vendor.text(), facts.board.text()), ("HPE", "HPE DL385"));
        assert_eq!((facts.bios_revision.text(), facts.controller_revision.text()), ("1.24", "2.30"));
        assert!(facts.bios_date.is_absent() && facts.smbios_version.is_absent());
        assert_eq!(read(&TestTree::new().root()), FirmwareFacts::default());
    }

    #[test]
    fn secure_boot_and_iommus_are_read() {
        let boot = |bytes: &[u8]| read(&TestTree::new().file(SECURE_BOOT, bytes).root());
        assert_eq!(boot(&[6, 0, 0, 0, 1]).secure_boot, Reading::Known(true));
        assert_eq!(boot(&[6, 0, 0, 0, 0]).secure_boot, Reading::Known(false));
        assert!(matches!(boot(&[6, 0, 0]).secure_boot, Reading::Unparsable(_)));
        assert_eq!(boot(&[]).is_uefi, Reading::Known(true));
        let iommus = TestTree::new().dir("/sys/class/iommu/dmar0").dir("/sys/class/iommu/dmar1");
        assert_eq!(read(&iommus.root()).iommu_count, Reading::Known(2));
        assert_eq!(read(&TestTree::new().dir("/sys/class/iommu").root()).iommu_count, Reading::Known(0));
    }
}
