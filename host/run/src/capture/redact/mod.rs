//! Overwrites data that identifies the host. Replacements in text have the same length, so that columns do
//! not move.
//!
//! Overwritten are the host's name and domain wherever they occur as words, hardware addresses except for the
//! vendor's half, UUIDs, machine and boot IDs, and the addresses of kernel modules. So are serial numbers,
//! asset tags and similar data in separate files and in the SMBIOS tables. Command lines and configuration
//! files keep only what is known to be harmless: parameters of the catalogue with their values, names of
//! other settings, and numbers. Comments are removed, and so is everything in unit files except section
//! headings. File names change only if they contain hardware addresses or UUIDs.

mod config;
mod identity;
mod pattern;
mod tokens;

use super::assemble::CaptureTree;
use crate::{root::INTERFACES, smbios, snapshot::ADDRESSES};
use lowlat_settings::Catalogue;
use pattern::Pseudonyms;
use std::collections::BTreeMap;
use tokens::KnownParameters;

/// A shorter host name is too likely to be part of other words.
const NAME_CHARS_MIN: usize = 3;

/// The SMBIOS table. A copy of each structure is below the directory.
const SMBIOS_TABLE: &str = "/sys/firmware/dmi/tables/DMI";
const SMBIOS_ENTRIES: &str = "/sys/firmware/dmi/entries/";

/// Shows root where each module was loaded, which helps an attacker.
const MODULES: &str = "/proc/modules";

/// Names swap files and the volumes with swap space.
const SWAPS: &str = "/proc/swaps";

/// Data to overwrite in one capture.
#[derive(Debug)]
pub(super) struct Redactor {
    /// Host and domain names, longest first.
    names: Vec<Vec<u8>>,
    known: KnownParameters,
    pseudonyms: Pseudonyms,
}

impl Redactor {
    /// Finds the host's names in the tree. Names that cannot be searched for are reported in `warnings`.
    pub(super) fn new(tree: &CaptureTree, catalogue: Catalogue, warnings: &mut Vec<String>) -> Self {
        let mut names = Vec::new();
        for path in identity::HOST_NAMES {
            let Some(text) = tree.files.get(*path) else { continue };
            let name = String::from_utf8_lossy(text).trim().to_owned();
            for part in parts(&name) {
                if part.len() < NAME_CHARS_MIN || part.bytes().all(|byte| byte.is_ascii_digit()) {
                    warnings.push(format!(
                        "The host name \"{part}\" is too short or only a number: it is removed from {path} \
                         but not searched for in other files."
                    ));
                } else {
                    names.push(part.as_bytes().to_vec());
                }
            }
        }
        names.sort_by_key(|name| (std::cmp::Reverse(name.len()), name.clone()));
        names.dedup();
        Self { names, known: KnownParameters::of(catalogue), pseudonyms: Pseudonyms::default() }
    }

    /// Overwrites the data and returns the number of changed files.
    pub(super) fn redact(mut self, tree: &mut CaptureTree) -> usize {
        let mut changed = 0;
        let files = std::mem::take(&mut tree.files);
        for (path, old) in files {
            let mut bytes = old.clone();
            self.content(&path, &mut bytes);
            changed += usize::from(bytes != old);
            tree.files.insert(self.path(&path), bytes);
        }
        let links = std::mem::take(&mut tree.links);
        tree.links = links
            .iter()
            .map(|(path, target)| (self.path(path), self.path(target)))
            .collect::<BTreeMap<_, _>>();
        tree.folders = std::mem::take(&mut tree.folders).iter().map(|path| self.path(path)).collect();
        for lines in tree.notes.values_mut() {
            *lines = std::mem::take(lines).iter().map(|line| self.path(line)).collect();
        }
        changed
    }

    fn content(&mut self, path: &str, bytes: &mut Vec<u8>) {
        if path == SMBIOS_TABLE {
            *bytes = smbios::redacted(bytes);
            return;
        }
        if path.starts_with(SMBIOS_ENTRIES) {
            bytes.fill(0);
            return;
        }
        if identity::is_identity(path) {
            pattern::blank(bytes);
            return;
        }
        if config::is_configuration(path) {
            config::redact(path, bytes, &self.known);
        }
        if path == MODULES {
            pattern::kernel_addresses(bytes);
        }
        if path == SWAPS {
            swaps(bytes);
        }
        if is_of_process(path) {
            pattern::ip_addresses(bytes);
        }
        if path.strip_prefix(INTERFACES).and_then(|name| name.strip_prefix('/')) == Some(ADDRESSES) {
            addresses(bytes);
        }
        if !keeps_well_known_ids(path) {
            pattern::hardware_addresses(bytes);
            self.pseudonyms.replace(bytes);
        }
        for name in &self.names {
            pattern::words(bytes, name);
        }
    }

    fn path(&mut self, path: &str) -> String {
        if keeps_well_known_ids(path) {
            return path.to_owned();
        }
        let mut bytes = path.as_bytes().to_vec();
        pattern::hardware_addresses(&mut bytes);
        self.pseudonyms.replace(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Keeps the kernel's own device names in the first column of /proc/swaps.
fn swaps(bytes: &mut [u8]) {
    for line in bytes.split_mut(|byte| *byte == b'\n').skip(1) {
        let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
        tokens::redact_device(&mut line[..end]);
    }
}

/// Zeroes every address in the JSON text of interfaces and their addresses; the number of addresses stays. Texts with a
/// slash are addresses: no interface has one in its name.
fn addresses(bytes: &mut [u8]) {
    for text in bytes.split_mut(|byte| *byte == b'"').filter(|text| text.contains(&b'/')) {
        pattern::zero_digits(text);
    }
}

/// Kernel threads that serve NFS are named after the server's address.
fn is_of_process(path: &str) -> bool {
    path.strip_prefix("/proc/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The UUIDs in the names of firmware variables are the same on every host.
fn keeps_well_known_ids(path: &str) -> bool {
    path.starts_with("/sys/firmware/efi/")
}

/// "db1.lab.example" yields itself, "db1" and "lab.example". The kernel's "(none)" and common names yield
/// nothing.
fn parts(name: &str) -> Vec<&str> {
    if matches!(name, "" | "(none)" | "localhost" | "localhost.localdomain") {
        return Vec::new();
    }
    match name.split_once('.') {
        Some((host, domain)) => [name, host, domain].into_iter().filter(|part| !part.is_empty()).collect(),
        None => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;

    fn redacted(files: &[(&str, &str)]) -> (BTreeMap<String, String>, Vec<String>) {
        let mut tree = CaptureTree::default();
        for (path, text) in files {
            tree.insert_file(path, text.as_bytes().to_vec());
        }
        let mut warnings = Vec::new();
        Redactor::new(&tree, CATALOGUE, &mut warnings).redact(&mut tree);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (tree.files.into_iter().map(|(path, bytes)| (path, text(bytes))).collect(), warnings)
    }

    const HOSTNAME: &str = "/proc/sys/kernel/hostname";

    #[test]
    fn the_hosts_names_go_wherever_they_are_words() {
        let (files, warnings) = redacted(&[
            (HOSTNAME, "db1.lab.example\n"),
            ("/proc/version", "Linux (root@db1) db12 lab.example db1-swap"),
        ]);
        assert_eq!(files["/proc/version"], "Linux (root@XXX) db12 XXX.XXXXXXX XXX-swap");
        assert_eq!(files[HOSTNAME], "XXX.XXX.XXXXXXX\n");
        assert!(warnings.is_empty());
    }

    #[test]
    fn addresses_of_interfaces_are_zeroed_and_their_number_stays() {
        let path = "/.lowlat/interface/addresses";
        let (files, _) = redacted(&[(path, r#"{"eth0":["10.1.2.3/24","fe80::1a/64"],"lo":[]}"#)]);
        assert_eq!(files[path], r#"{"eth0":["00.0.0.0/00","0000::00/00"],"lo":[]}"#);
    }

    #[test]
    fn a_short_name_is_reported_and_not_searched_for() {
        let (files, warnings) = redacted(&[(HOSTNAME, "a1\n"), ("/proc/version", "a1")]);
        assert_eq!((files[HOSTNAME].as_str(), files["/proc/version"].as_str()), ("XX\n", "a1"));
        assert!(warnings[0].contains("\"a1\" is too short"), "{warnings:?}");
        let (files, warnings) = redacted(&[("/proc/sys/kernel/domainname", "(none)\n"), ("/x", "none")]);
        assert!(files["/x"] == "none" && warnings.is_empty());
    }

    #[test]
    fn addresses_and_ids_go_from_names_and_contents_alike() {
        let uuid = "4c4c4544-0042-3510-8052-b7c04f4d3233";
        let other = "11111111-2222-3333-4444-555555555555";
        let (files, _) = redacted(&[
            ("/sys/devices/vmbus/4c4c4544-0042-3510-8052-b7c04f4d3233/x", uuid),
            ("/sys/class/net/enx001122aabbcc/address", "00:11:22:aa:bb:cc\n"),
            ("/sys/other", other),
        ]);
        let told: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(
            told,
            [
                ("/sys/class/net/enx001122000000/address", "00:11:22:00:00:00\n"),
                (
                    "/sys/devices/vmbus/00000000-0000-0000-0000-000000000001/x",
                    "00000000-0000-0000-0000-000000000001"
                ),
                ("/sys/other", "00000000-0000-0000-0000-000000000002"),
            ]
        );
    }

    #[test]
    fn names_of_firmware_variables_stay() {
        let path = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
        let (files, _) = redacted(&[(path, "x")]);
        assert!(files.contains_key(path));
    }

    #[test]
    fn smbios_keeps_what_is_read_of_it() {
        let system = b"\x01\x1b\x01\0\x01\x02\0\x03UUIDUUIDUUIDUUID\x06\0\0HPE\0DL385\0CZ20\0\0";
        let mut tree = CaptureTree::default();
        tree.insert_file(SMBIOS_TABLE, system.to_vec());
        tree.insert_file("/sys/firmware/dmi/entries/1-0/raw", system.to_vec());
        assert_eq!(Redactor::new(&tree, CATALOGUE, &mut Vec::new()).redact(&mut tree), 2);
        let holds =
            |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds(&tree.files[SMBIOS_TABLE], "DL385"));
        for bytes in tree.files.values() {
            assert!(!holds(bytes, "UUID") && !holds(bytes, "CZ20"), "{bytes:?}");
        }
    }

    #[test]
    fn serials_and_machine_ids_are_blanked() {
        let (files, _) = redacted(&[
            ("/sys/devices/virtual/dmi/id/product_serial", "CZ20-1\n"),
            ("/etc/machine-id", "0123456789abcdef\n"),
            ("/sys/devices/pci0000:00/nvme/nvme0/serial", "S4EV NF0\n"),
            ("/sys/devices/virtual/dmi/id/product_name", "ProLiant\n"),
        ]);
        let values: Vec<&str> = files.values().map(String::as_str).collect();
        assert_eq!(values, ["XXXXXXXXXXXXXXXX\n", "XXXX XXX\n", "ProLiant\n", "XXXX-X\n"]);
    }
}
