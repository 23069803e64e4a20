//! Command lines of the kernel, and the configuration files they come from.

use super::pattern;

/// Tokens whose values say where the host stands in its network, or who may enter it.
const PRIVATE_KEYS: &[&str] =
    &["ip", "ipv6", "nfsroot", "nfsaddrs", "netroot", "nameserver", "rd.peerdns", "ifcfg"];
/// Beginnings of such keys.
const PRIVATE_PREFIXES: &[&str] =
    &["rd.iscsi.", "rd.nbd.", "rd.luks.", "systemd.machine_id", "systemd.set_credential"];
/// What a key of a secret contains.
const SECRET_WORDS: &[&str] = &["password", "passwd", "secret", "token", "apikey", "api_key"];
/// Values that tell nothing of one host.
const HARMLESS_VALUES: &[&str] = &[
    "", "0", "1", "on", "off", "none", "any", "dhcp", "dhcp4", "dhcp6", "auto", "auto6", "both", "ibft",
    "link6",
];

/// Whether a file holds a command line or configuration.
pub(super) fn is_command_line(path: &str) -> bool {
    matches!(path, "/proc/cmdline" | "/proc/bootconfig")
        || path.starts_with("/etc/")
        || path.starts_with("/boot/")
}

pub(super) fn redact(bytes: &mut [u8]) {
    for token in bytes.split_mut(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'')) {
        redact_token(token);
    }
    ip_addresses(bytes);
}

fn redact_token(token: &mut [u8]) {
    for marker in [b"UUID=".as_slice(), b"uuid/"] {
        if let Some(at) = find(token, marker) {
            let tail = token.get_mut(at + marker.len()..).unwrap_or_default();
            let end =
                tail.iter().position(|byte| !byte.is_ascii_hexdigit() && *byte != b'-').unwrap_or(tail.len());
            pattern::zero_digits(tail.get_mut(..end).unwrap_or_default());
        }
    }
    if let Some(at) = find(token, b"/by-id/") {
        pattern::blank(token.get_mut(at + 7..).unwrap_or_default());
    }
    if token.starts_with(b"grub.pbkdf2.") {
        pattern::blank(token);
    }
    let Some(at) = token.iter().position(|byte| *byte == b'=') else { return };
    let (key, value) = token.split_at_mut(at);
    let Some(value) = value.get_mut(1..) else { return };
    if is_private(&String::from_utf8_lossy(key))
        && !HARMLESS_VALUES.iter().any(|harmless| harmless.as_bytes() == value)
    {
        pattern::blank(value);
    }
}

/// Keys are compared as the kernel does: `-` and `_` are alike, and so are here letters of both cases.
fn is_private(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    PRIVATE_KEYS.contains(&key.as_str())
        || PRIVATE_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || SECRET_WORDS.iter().any(|word| key.contains(word))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// Zeroes the digits of IPv4 addresses: four numbers up to 255 with dots between.
fn ip_addresses(bytes: &mut [u8]) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.';
    for word in bytes.split_mut(|byte| !is_part(*byte)) {
        let numbers: Vec<Option<u8>> =
            String::from_utf8_lossy(word).split('.').take(5).map(|number| number.parse().ok()).collect();
        if numbers.len() == 4 && numbers.iter().all(Option::is_some) {
            pattern::zero_digits(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        redact(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn network_roots_and_secrets_go_and_tuning_stays() {
        for (line, kept) in [
            (
                "isolcpus=1-7 ip=10.1.2.3::10.1.2.1:255.255.255.0:db1:eth0:none",
                "isolcpus=1-7 ip=XX.X.X.X::XX.X.X.X:XXX.XXX.XXX.X:XXX:XXXX:XXXX",
            ),
            ("ip=dhcp nfsroot=10.0.0.1:/srv", "ip=dhcp nfsroot=XX.X.X.X:/XXX"),
            ("root=UUID=4c4c4544-0042 ro", "root=UUID=00000000-0000 ro"),
            ("root=PARTUUID=1234abcd-02 ro", "root=PARTUUID=00000000-00 ro"),
            ("root=/dev/disk/by-uuid/4c4c4544-0042 quiet", "root=/dev/disk/by-uuid/00000000-0000 quiet"),
            ("root=/dev/disk/by-id/nvme-S4EV", "root=/dev/disk/by-id/XXXX-XXXX"),
            ("rd.iscsi.password=hunter2", "rd.iscsi.password=XXXXXXX"),
            ("GRUB_CMDLINE_LINUX=\"ip=1.2.3.4 nohz=on\"", "GRUB_CMDLINE_LINUX=\"ip=X.X.X.X nohz=on\""),
            ("netconsole=@192.168.1.5/eth0", "netconsole=@000.000.0.0/eth0"),
            ("BOOT_IMAGE=/vmlinuz-5.10.0-28-amd64 audit=0", "BOOT_IMAGE=/vmlinuz-5.10.0-28-amd64 audit=0"),
        ] {
            assert_eq!(redacted(line), kept);
        }
    }
}
