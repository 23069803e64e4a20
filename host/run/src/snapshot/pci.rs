//! The PCI function of a device in /sys.

use super::nics::kept;
use crate::Root;
use lowlat_host::{Reading, snapshot::PcieTransfers};

/// A PCI function: its address and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// Its address, such as "0000:01:00.0".
    pub(super) address: String,
    /// Its path, such as "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0".
    pub(super) directory: String,
}

impl Function {
    /// Its NUMA node, -1 if the host does not report it.
    pub(super) fn node(&self, root: &Root) -> Reading<i32> {
        root.read_as(&format!("{}/numa_node", self.directory), "the number of a NUMA node, or -1")
    }

    /// Its Device Control. Captures keep the answer: the configuration space has the serial number of the card too.
    pub(super) fn transfers(&self, root: &Root) -> Reading<PcieTransfers> {
        kept(root, "pcie", &self.address, || {
            let path = format!("{}/config", self.directory);
            Root::live().read_bytes(&path).and_then(|config| transfers_in(&config))
        })
        .and_then(|transfers| transfers)
    }
}

/// Device Control in a configuration space; absent if the function is not of PCI Express. Without privileges the kernel
/// shows the first 64 bytes alone.
fn transfers_in(config: &[u8]) -> Reading<PcieTransfers> {
    const STATUS: usize = 0x06;
    const HAS_CAPABILITIES: u8 = 0x10;
    const CAPABILITIES: usize = 0x34;
    const PCI_EXPRESS: u8 = 0x10;
    const CONTROL: usize = 8;
    let byte = |at: usize| config.get(at).copied();
    if byte(STATUS).is_none_or(|status| status & HAS_CAPABILITIES == 0) {
        return Reading::Absent;
    }
    let mut at = byte(CAPABILITIES).map(usize::from).unwrap_or_default();
    // No list is longer than the space has room for.
    for _ in 0..48 {
        at &= !3;
        if at == 0 {
            return Reading::Absent;
        }
        let (Some(id), Some(next)) = (byte(at), byte(at + 1)) else { return Reading::Denied };
        if id == PCI_EXPRESS {
            let (Some(low), Some(high)) = (byte(at + CONTROL), byte(at + CONTROL + 1)) else {
                return Reading::Denied;
            };
            return Reading::Known(PcieTransfers {
                payload_bytes_max: 128_u32 << (low >> 5),
                read_request_bytes_max: 128_u32 << ((high >> 4) & 7),
                is_relaxed: low & 0x10 != 0,
            });
        }
        at = usize::from(next);
    }
    Reading::unparsable("config", "a list of capabilities without end", "a PCI configuration space")
}

/// The nearest function above the device that `link` leads to. A device on a USB bus is attached to the bus
/// controller only by its plug, so it has none.
pub(super) fn function_behind(root: &Root, link: &str) -> Reading<Function> {
    root.real_path(link).and_then(|path| Reading::from_option(nearest(&path)))
}

fn nearest(path: &str) -> Option<Function> {
    let components: Vec<&str> = path.split('/').collect();
    let at = components.iter().rposition(|component| is_address(component))?;
    let (directory, below) = components.split_at_checked(at + 1)?;
    if below.iter().any(|component| component.starts_with("usb")) {
        return None;
    }
    Some(Function { address: (*directory.last()?).to_owned(), directory: directory.join("/") })
}

/// True if the text is `domain:bus:device.function` in hexadecimal digits.
fn is_address(text: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some((place, function)) = text.rsplit_once('.') else { return false };
    let parts: Vec<&str> = place.split(':').collect();
    is_hex(function)
        && matches!(parts[..], [domain, bus, device] if is_hex(domain) && is_hex(bus) && is_hex(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_function_is_found() {
        let address = |path| nearest(path).map(|function| function.address).unwrap_or_default();
        assert_eq!(address("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"), "0000:01:00.0");
        assert_eq!(address("/sys/devices/pci0000:00/0000:00:03.0/virtio2"), "0000:00:03.0");
        assert_eq!(address("/sys/devices/pci0000:00/0000:00:14.0/usb1/1-1/1-1:1.0"), "");
        assert_eq!(address("/sys/devices/pci0000:00"), "");
        assert_eq!(address("/sys/devices/virtual/net/lo"), "");
        let vmd =
            nearest("/sys/devices/pci0000:7f/0000:7f:00.5/pci10000:00/10000:00:02.0/10000:01:00.0/nvme")
                .unwrap();
        assert!(vmd.address == "10000:01:00.0" && vmd.directory.ends_with("/10000:01:00.0"));
    }

    #[test]
    fn device_control_is_found_behind_other_capabilities() {
        let mut config = vec![0; 256];
        config[0x06] = 0x10;
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x01, 0x70]);
        config[0x70..0x72].copy_from_slice(&[0x10, 0]);
        config[0x78..0x7A].copy_from_slice(&[0x30, 0x29]);
        let expected =
            PcieTransfers { payload_bytes_max: 256, read_request_bytes_max: 512, is_relaxed: true };
        assert_eq!(transfers_in(&config), Reading::Known(expected));
        assert_eq!(transfers_in(&config[..64]), Reading::Denied, "as users without privileges see it");
        config[0x41] = 0;
        assert_eq!(transfers_in(&config), Reading::Absent, "a function of PCI");
        config[0x41] = 0x40;
        assert!(matches!(transfers_in(&config), Reading::Unparsable(_)));
        assert_eq!(transfers_in(&[]), Reading::Absent);
    }

    proptest::proptest! {
        #[test]
        fn no_configuration_space_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
            let _ = transfers_in(&bytes);
        }

        #[test]
        fn no_path_panics(path in "[/.:0-9a-gusb\\PC]{0,60}") {
            let _ = nearest(&path);
        }
    }
}
