//! Reads block devices that are backed by a device; loop, ram, zram, device-mapper and md devices are not.

use super::{
    formats,
    pci::{self, Function},
};
use crate::Root;
use lowlat_host::{Reading, snapshot::Disk};

/// Unit of the sizes in /sys/block, whatever the device's block size.
const SECTOR_BYTES: u64 = 512;
/// Name prefixes of devices that consist of files, memory or other devices, or have removable media.
const NOT_DISKS: [&str; 8] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"];
/// Maximum number of devices read.
const DISKS_MAX: usize = 4_096;

pub(super) fn read(root: &Root) -> Vec<Disk> {
    let names = root.or_unread("/sys/block", root.list("/sys/block"));
    names.into_iter().filter(|name| is_disk(name)).take(DISKS_MAX).map(|name| disk(root, name)).collect()
}

fn is_disk(name: &str) -> bool {
    let is_numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    !NOT_DISKS.iter().any(|prefix| is_numbered(prefix)) && !is_path_of_nvme(name)
}

/// True if the name is one path to a multipath NVMe device (`nvme0c1n2`), which the kernel hides from users: the disk
/// is `nvme0n2`.
fn is_path_of_nvme(name: &str) -> bool {
    let rest = name.strip_prefix("nvme").unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = rest.strip_prefix('c').unwrap_or_default().trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with('n')
}

fn disk(root: &Root, name: String) -> Disk {
    let file = |file: &str| format!("/sys/block/{name}/{file}");
    let function = function(root, &name);
    let sectors: Reading<u64> = root.read_as(&file("size"), "a number of 512-byte sectors");
    Disk {
        model: root.read(&file("device/model")).map(|text| text.trim().to_owned()),
        size_bytes: sectors.and_then(|sectors| {
            let bytes = sectors.checked_mul(SECTOR_BYTES);
            Reading::understood(bytes, file("size"), &sectors.to_string(), "a size in 64 bits")
        }),
        is_rotational: formats::read_flag(root, &file("queue/rotational")),
        scheduler: formats::chosen_word(root, &file("queue/scheduler")),
        bus: function.as_ref().map(|function| function.address.clone()),
        node: function.as_ref().and_then(|function| function.node(root)),
        name,
    }
}

/// The controller's PCI function. A multipath NVMe device belongs to its subsystem, which is not on a bus.
/// Its first path on a bus is used instead: the controller `nvme0` of `nvme0n1`.
fn function(root: &Root, name: &str) -> Reading<Function> {
    let behind = pci::function_behind(root, &format!("/sys/block/{name}"));
    behind.or(|| {
        let controller =
            name.strip_prefix("nvme").and_then(|rest| rest.split_once('n')).map(|(number, _)| number);
        match controller {
            Some(number) => pci::function_behind(root, &format!("/sys/class/nvme/nvme{number}")),
            None => Reading::Absent,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    const NVME: &str = "/sys/devices/pci0000:40/0000:40:03.1/0000:44:00.0";

    fn host() -> TestTree {
        let block = |name: &str| format!("{NVME}/nvme/nvme0/nvme0n1/{name}");
        TestTree::new()
            .link("/sys/block/nvme0n1", &format!("{NVME}/nvme/nvme0/nvme0n1"))
            .file(&block("size"), "1000215216\n")
            .file(&block("queue/rotational"), "0\n")
            .file(&block("queue/scheduler"), "[none] mq-deadline\n")
            .link(&block("device"), "../../nvme0")
            .file(&format!("{NVME}/nvme/nvme0/model"), "SAMSUNG MZQL2960HCJR-00A07              \n")
            .file(&format!("{NVME}/numa_node"), "1\n")
            .dir("/sys/block/nvme0c1n1")
            .dir("/sys/block/loop0")
            .dir("/sys/block/zram0")
            .dir("/sys/block/dm-3")
            .dir("/sys/block/md127")
            .file("/sys/block/sda/size", "99999999999999999999\n")
            .file("/sys/block/sda/queue/rotational", "yes\n")
    }

    #[test]
    fn a_disk_is_read_with_its_controller() {
        let disks = read(&host().root());
        let names: Vec<&str> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["nvme0n1", "sda"]);
        let nvme = &disks[0];
        assert_eq!((nvme.model.text(), nvme.scheduler.text()), ("SAMSUNG MZQL2960HCJR-00A07", "none"));
        assert_eq!(nvme.size_bytes, Reading::Known(512_110_190_592));
        assert_eq!(nvme.is_rotational, Reading::Known(false));
        assert_eq!((nvme.bus.text(), nvme.node.clone()), ("0000:44:00.0", Reading::Known(1)));
        let sda = &disks[1];
        assert!(matches!(sda.size_bytes, Reading::Unparsable(_)));
        assert!(matches!(sda.is_rotational, Reading::Unparsable(_)));
        assert!(sda.model.is_absent() && sda.bus.is_absent() && sda.node.is_absent());
    }

    #[test]
    fn a_multipath_device_has_the_place_of_its_controller() {
        let tree = TestTree::new()
            .dir("/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
            .link("/sys/block/nvme0n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1")
            .dir(&format!("{NVME}/nvme/nvme0"))
            .link("/sys/class/nvme/nvme0", &format!("{NVME}/nvme/nvme0"));
        assert_eq!(read(&tree.root())[0].bus.text(), "0000:44:00.0");
    }

    #[test]
    fn names_of_disks_are_distinguished_from_others() {
        for name in ["sda", "nvme0n1", "vda", "mmcblk0", "ramsan", "md_d0"] {
            assert!(is_disk(name), "{name}");
        }
        for name in ["loop7", "ram0", "zram1", "dm-0", "md0", "sr0"] {
            assert!(!is_disk(name), "{name}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            let names = ["size", "queue/rotational", "queue/scheduler", "device/model"];
            let tree = names.iter().fold(TestTree::new(), |tree, name| tree.file(&format!("/sys/block/a/{name}"), &bytes));
            assert_eq!(read(&tree.root()).len(), 1);
        }

        #[test]
        fn any_size_has_an_answer(sectors: u64) {
            let tree = TestTree::of(&[("/sys/block/a/size", &sectors.to_string())]);
            let is_known = read(&tree.root())[0].size_bytes.is_known();
            assert_eq!(is_known, sectors.checked_mul(SECTOR_BYTES).is_some());
        }
    }
}
