//! The PCI function of a device in /sys.

use crate::Root;
use lowlat_host::Reading;

/// A PCI function: its address and its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// "0000:01:00.0".
    pub(super) address: String,
    /// "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0".
    pub(super) directory: String,
}

impl Function {
    /// Its NUMA node, -1 if the host does not report it.
    pub(super) fn node(&self, root: &Root) -> Reading<i32> {
        root.read_as(&format!("{}/numa_node", self.directory), "the number of a NUMA node, or -1")
    }
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

/// `domain:bus:device.function` in hexadecimal digits.
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

    proptest::proptest! {
        #[test]
        fn no_path_panics(path in "[/.:0-9a-gusb\\PC]{0,60}") {
            let _ = nearest(&path);
        }
    }
}
