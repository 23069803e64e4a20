//! Owners of address ranges: a short table of the usual adapters in trading hosts, then the lists that
//! distributions install.

use crate::Root;
use lowlat_host::Reading;

/// The first three bytes of an address.
type Prefix = [u8; 3];

/// Address ranges of network adapters and hypervisors in the IEEE registry; QEMU's own is a local range.
#[rustfmt::skip]
const RANGES: &[(&str, &[Prefix])] = &[
    ("Solarflare", &[[0x00, 0x0f, 0x53], [0x00, 0x0a, 0x68]]),
    ("Mellanox", &[
        [0x00, 0x02, 0xc9], [0x04, 0x3f, 0x72], [0x08, 0xc0, 0xeb], [0x0c, 0x42, 0xa1], [0x10, 0x70, 0xfd],
        [0x1c, 0x34, 0xda], [0x24, 0x8a, 0x07], [0x50, 0x6b, 0x4b], [0x7c, 0xfe, 0x90], [0x94, 0x6d, 0xae],
        [0x98, 0x03, 0x9b], [0xb8, 0x59, 0x9f], [0xb8, 0xce, 0xf6], [0xe4, 0x1d, 0x2d], [0xe8, 0xeb, 0xd3],
        [0xec, 0x0d, 0x9a], [0xf4, 0x52, 0x14],
    ]),
    ("NVIDIA", &[[0x48, 0xb0, 0x2d], [0x00, 0x04, 0x4b]]),
    ("Intel", &[
        [0x00, 0x15, 0x17], [0x00, 0x1b, 0x21], [0x00, 0x1e, 0x67], [0x3c, 0xfd, 0xfe], [0x40, 0xa6, 0xb7],
        [0x68, 0x05, 0xca], [0x6c, 0xfe, 0x54], [0x90, 0xe2, 0xba], [0xa0, 0x36, 0x9f], [0xb4, 0x96, 0x91],
    ]),
    ("Broadcom", &[
        [0x00, 0x0a, 0xf7], [0x00, 0x10, 0x18], [0x14, 0x23, 0xf2], [0x84, 0x16, 0x0c], [0xb0, 0x26, 0x28],
        [0xbc, 0x97, 0xe1],
    ]),
    ("Exablaze", &[[0x64, 0x3f, 0x5f]]),
    ("Napatech", &[[0x00, 0x0d, 0xe9]]),
    ("Chelsio", &[[0x00, 0x07, 0x43]]),
    ("Myricom", &[[0x00, 0x60, 0xdd]]),
    ("Xilinx", &[[0x00, 0x0a, 0x35], [0x00, 0x5d, 0x03]]),
    ("Pensando", &[[0x00, 0xae, 0xcd], [0x04, 0x90, 0x81]]),
    ("Netronome", &[[0x00, 0x15, 0x4d]]),
    ("Metamako", &[[0x7c, 0x53, 0x4a]]),
    ("QEMU", &[[0x52, 0x54, 0x00]]),
    ("VMware", &[[0x00, 0x05, 0x69], [0x00, 0x0c, 0x29], [0x00, 0x1c, 0x14], [0x00, 0x50, 0x56]]),
    ("Xen", &[[0x00, 0x16, 0x3e]]),
    ("Hyper-V", &[[0x00, 0x15, 0x5d]]),
    ("VirtualBox", &[[0x08, 0x00, 0x27]]),
];

/// Lists under the root: the registry's own text (Debian's ieee-data, Fedora's hwdata), and nmap's.
const LISTS: [&str; 3] =
    ["/usr/share/ieee-data/oui.txt", "/usr/share/hwdata/oui.txt", "/usr/share/nmap/nmap-mac-prefixes"];

/// Looks up owners; a list is read once, when the table does not contain an address.
pub(super) struct Vendors<'a> {
    root: &'a Root,
    list: Option<Reading<String>>,
}

impl<'a> Vendors<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Self { root, list: None }
    }

    /// The owner of the range of an address such as "00:0f:53:65:4a:10"; absent if unknown.
    pub(super) fn of(&mut self, mac: &str) -> Reading<String> {
        let Some(prefix) = prefix_of(mac) else {
            return Reading::unparsable(
                "a hardware address",
                mac,
                "three bytes such as 00:0f:53 at its start",
            );
        };
        if let Some((name, _)) = RANGES.iter().find(|(_, ranges)| ranges.contains(&prefix)) {
            return Reading::Known((*name).to_owned());
        }
        // Addresses of lo and locally administered ones (the local bit) have no owner.
        if prefix == [0; 3] || prefix[0] & 0b10 != 0 {
            return Reading::Absent;
        }
        let root = self.root;
        let list = self.list.get_or_insert_with(|| first_list(root));
        list.as_ref().and_then(|list| Reading::from_option(owner_in(list, prefix)))
    }
}

fn first_list(root: &Root) -> Reading<String> {
    LISTS.iter().fold(Reading::Absent, |found, path| found.or(|| root.read_lossy(path)))
}

fn prefix_of(mac: &str) -> Option<Prefix> {
    let mut bytes = mac.split([':', '-']).map(|byte| {
        let is_byte = byte.len() == 2 && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_byte.then(|| u8::from_str_radix(byte, 16).ok()).flatten()
    });
    Some([bytes.next()??, bytes.next()??, bytes.next()??])
}

/// Lines such as `00-0F-53   (hex)  Solarflare Communications Inc.`, or nmap's `000F53 Solarflare Communications`.
fn owner_in(list: &str, [a, b, c]: Prefix) -> Option<String> {
    let (registry, nmap) = (format!("{a:02X}-{b:02X}-{c:02X}"), format!("{a:02X}{b:02X}{c:02X}"));
    list.lines().find_map(|line| {
        let (key, owner) = line.split_once(char::is_whitespace)?;
        let owner = owner.trim_start();
        let owner = match owner.strip_prefix("(hex)") {
            Some(owner) if key == registry => owner,
            None if key == nmap && !owner.starts_with("(base 16)") => owner,
            _ => return None,
        };
        Some(owner.trim().to_owned()).filter(|owner| !owner.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn the_table_precedes_the_lists_and_local_addresses_have_no_owner() {
        let list = "00-16-31   (hex)\t\tXteam\n001631     (base 16)\t\tXteam\n02-00-00   (hex)\tNever\n";
        let tree = TestTree::of(&[("/usr/share/hwdata/oui.txt", list)]);
        let root = tree.root();
        let mut vendors = Vendors::new(&root);
        assert_eq!(vendors.of("00:0f:53:65:4a:10").text(), "Solarflare");
        assert_eq!(vendors.of("52:54:00:12:34:56").text(), "QEMU");
        assert_eq!(vendors.of("00:16:31:00:00:01").text(), "Xteam");
        assert_eq!(vendors.of("00:0F:53").text(), "Solarflare", "a redacted address keeps its range");
        for unowned in ["02:00:00:00:00:01", "00:00:00:00:00:00", "00:ff:ff:00:00:01"] {
            assert!(vendors.of(unowned).is_absent(), "{unowned}");
        }
        assert!(matches!(vendors.of("x"), Reading::Unparsable(_)));
    }

    #[test]
    fn nmap_prefixes_are_read() {
        let tree = TestTree::of(&[("/usr/share/nmap/nmap-mac-prefixes", "# c\n001631 Xteam Ltd\n")]);
        assert_eq!(Vendors::new(&tree.root()).of("00:16:31:aa:bb:cc").text(), "Xteam Ltd");
    }

    #[test]
    fn no_range_has_two_owners() {
        let mut ranges: Vec<&Prefix> = RANGES.iter().flat_map(|(_, ranges)| ranges.iter()).collect();
        let count = ranges.len();
        ranges.sort_unstable();
        ranges.dedup();
        assert_eq!(ranges.len(), count);
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(mac in "\\PC{0,20}", list in "\\PC{0,80}") {
            let _ = prefix_of(&mac).map(|prefix| owner_in(&list, prefix));
        }
    }
}
