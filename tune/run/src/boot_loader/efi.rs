//! EFI variables that boot loaders set for the operating system (Boot Loader Interface).

use lowlat_host::Reading;
use lowlat_host_run::Root;

/// Maximum length of a variable, in UTF-16 units.
const LETTERS_MAX: usize = 1024;

/// True if the firmware is EFI.
pub(super) fn is_efi(root: &Root) -> bool {
    root.exists("/sys/firmware/efi")
}

/// A text variable of the interface, such as `LoaderInfo` with "systemd-boot 252.30-1~deb12u2"; none if it is not set.
pub(super) fn variable(root: &Root, name: &str) -> Option<String> {
    let path = format!("/sys/firmware/efi/efivars/{name}-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f");
    let Reading::Known(bytes) = root.read_bytes(&path) else { return None };
    // Four bytes of attributes, then little-endian UTF-16 with a zero at its end.
    let units =
        bytes.get(4..)?.chunks_exact(2).filter_map(|pair| Some(u16::from_le_bytes(pair.try_into().ok()?)));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).take(LETTERS_MAX).collect();
    let text = String::from_utf16_lossy(&units);
    (!text.is_empty()).then_some(text)
}
