//! Files that people and packages write: command lines, boot menus, sysctls, TuneD profiles, kernel
//! configurations.
//!
//! Only what is known to be harmless is kept: names of settings, numbers, and a few words.

use super::{
    pattern,
    tokens::{self, KnownParameters},
};
use flate2::{Compression, GzBuilder, read::GzDecoder};
use std::io::{Read, Write};

/// Directories of files that people and packages write.
const FOLDERS: [&str; 9] =
    ["/etc/", "/usr/lib/", "/usr/local/lib/", "/lib/", "/run/", "/boot/", "/efi/", "/var/", "/usr/share/"];
/// Parts of the paths of unit files and of system.conf.
const UNITS: [&str; 2] = ["/systemd/system/", "/systemd/system."];
const COMPRESSED_CONFIG: &str = "/proc/config.gz";
/// Maximum size of an unpacked kernel configuration.
const CONFIG_BYTES_MAX: u64 = 16 << 20;
/// Keys whose value is a command line.
const LINE_KEYS: &[&str] =
    &["options", "kernelopts", "cmdline", "tuned_params", "IRQBALANCE_ARGS", "OPTIONS"];
/// Keys whose value may be a word.
const WORD_KEYS: &[&str] = &[
    "ID",
    "ID_LIKE",
    "NAME",
    "PRETTY_NAME",
    "VERSION",
    "VERSION_ID",
    "VERSION_CODENAME",
    "include",
    "rollback",
    "governor",
    "elevator",
    "transparent_hugepages",
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "replace",
    "type",
    "SELINUX",
];
/// Files that contain one word: names of TuneD profiles.
const WORD_FILES: [&str; 3] =
    ["/etc/tuned/active_profile", "/etc/tuned/profile_mode", "/etc/tuned/post_loaded_profile"];
/// Prefixes of key parts whose value is never kept. "swappiness" has no such part.
const SECRET_STARTS: &[&str] = &["pass", "psk", "secret", "token", "cred", "user", "auth"];
/// Complete key parts whose value is never kept.
const SECRET_PARTS: &[&str] = &["pin", "key", "pw", "pwd"];
/// Substrings of keys whose value may be a mask.
const CPU_KEYS: &[&str] = &["cpu", "core", "mask", "isol"];
/// Longest value kept as a word or a number.
const WORD_BYTES_MAX: usize = 64;
const NUMBER_BYTES_MAX: usize = 20;

pub(super) fn is_configuration(path: &str) -> bool {
    matches!(path, "/proc/cmdline" | "/proc/bootconfig" | COMPRESSED_CONFIG)
        || FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// Redacts one such file. Line numbers and the lengths of values do not change.
pub(super) fn redact(path: &str, bytes: &mut Vec<u8>, known: &KnownParameters) {
    if path == COMPRESSED_CONFIG {
        // Content that cannot be unpacked cannot be redacted.
        *bytes = recompressed(bytes).unwrap_or_default();
    } else if path.starts_with("/boot/config-") || (path.contains("/modules/") && path.ends_with("/config")) {
        kernel_config(bytes);
    } else if UNITS.iter().any(|folder| path.contains(folder)) {
        *bytes = unit(path, &String::from_utf8_lossy(bytes)).into_bytes();
    } else if path == "/proc/cmdline" || path.ends_with("/kernel/cmdline") {
        tokens::redact(bytes, known);
    } else if path.contains("/EFI/") {
        // Of a kernel image its command line is kept, then its release and size.
        if let Some(line) = bytes.split_mut(|byte| *byte == b'\n').next() {
            tokens::redact(line, known);
        }
    } else if WORD_FILES.contains(&path) {
        let is_names = bytes.split(u8::is_ascii_whitespace).all(is_word);
        if !is_names {
            pattern::blank_all(bytes);
        }
    } else {
        for line in bytes.split_mut(|byte| *byte == b'\n') {
            redact_line(line, known);
        }
    }
}

/// Returns the parts of a unit file that readers use: section headings, CPU lists, and the sources of irqbalance's
/// list. Line numbers are kept.
fn unit(path: &str, text: &str) -> String {
    let is_list = |value: &str| value.bytes().all(|byte| byte.is_ascii_digit() || b",- ".contains(&byte));
    let is_of_irqbalance = path.contains("/irqbalance.service");
    let is_kept = |line: &&str| {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            return !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        }
        match line.split_once('=') {
            Some(("CPUAffinity" | "AllowedCPUs", value)) => is_list(value),
            Some(("Environment", value)) => {
                let ban = value.trim_matches('"').strip_prefix("IRQBALANCE_BANNED_CPULIST=");
                value.is_empty() || ban.is_some_and(is_list)
            }
            Some(("EnvironmentFile", value)) => {
                is_of_irqbalance
                    && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte))
            }
            _ => false,
        }
    };
    let lines = text.lines().map(|line| Some(line.trim()).filter(is_kept).unwrap_or_default());
    let kept = lines.collect::<Vec<_>>().join("\n");
    // An empty unit file is a mask; one without sections is not.
    if text.is_empty() { String::new() } else { kept.trim_end().to_owned() + "\n" }
}

fn recompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(CONFIG_BYTES_MAX).read_to_end(&mut text).ok()?;
    kernel_config(&mut text);
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    gzip.write_all(&text).ok()?;
    gzip.finish().ok()
}

/// Keeps options that are switches or numbers, and those that are off. Texts are removed: the built-in
/// command line is one.
fn kernel_config(bytes: &mut [u8]) {
    for line in bytes.split_mut(|byte| *byte == b'\n') {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let is_off = text
            .strip_prefix("# CONFIG_")
            .and_then(|rest| rest.strip_suffix(" is not set"))
            .is_some_and(|name| is_option(name.as_bytes()));
        let value = text.strip_prefix("CONFIG_").and_then(|rest| rest.split_once('='));
        match value {
            _ if is_off => {}
            Some((name, value)) if is_option(name.as_bytes()) => {
                let is_kept = value == "\"\""
                    || (!value.starts_with('"') && is_number(value.as_bytes()))
                    || matches!(value, "y" | "m" | "n");
                let start = "CONFIG_=".len() + name.len();
                if !is_kept {
                    pattern::blank(&mut line[start..]);
                }
            }
            _ => pattern::blank_all(line),
        }
    }
}

fn is_option(name: &[u8]) -> bool {
    name.len() <= WORD_BYTES_MAX && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn redact_line(line: &mut [u8], known: &KnownParameters) {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(line.len());
    let line = &mut line[start..];
    // GRUB's environment block is padded with these.
    let is_filling = line.iter().all(|byte| *byte == b'#') || line == b"# GRUB Environment Block";
    if is_filling || is_heading(line) {
        return;
    }
    if matches!(line.first(), Some(b'#' | b';')) {
        line.fill(b' ');
        return;
    }
    if let Some(words) = line.strip_prefix(b"options ").map(<[u8]>::len) {
        let at = line.len() - words;
        tokens::redact(&mut line[at..], known);
        return;
    }
    match line.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (key, value) = line.split_at_mut(at);
            redact_assignment(key, &mut value[1..], known);
        }
        None => {
            for word in line.split_mut(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
                if !is_bare(word) {
                    pattern::blank_all(word);
                }
            }
        }
    }
}

fn is_heading(line: &[u8]) -> bool {
    let name = line.trim_ascii_end().strip_prefix(b"[").and_then(|line| line.strip_suffix(b"]"));
    name.is_some_and(|name| is_word(name) && name.len() <= PART_BYTES_MAX)
}

/// Longest heading that is kept, in bytes.
const PART_BYTES_MAX: usize = 24;

/// Words of a line in tmpfiles.d or in a list that are not paths of users.
fn is_bare(word: &[u8]) -> bool {
    let is_kernel_path = |path: &[u8]| {
        path.len() <= 128 && path.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_./*-".contains(byte))
    };
    matches!(word, b"-" | b"w" | b"w+" | b"w!" | b"{" | b"}" | b"fi" | b"else")
        || matches!(word, b"hard" | b"soft" | b"memlock" | b"rtprio" | b"unlimited" | b"infinity")
        || is_number(word)
        || ((word.starts_with(b"/sys/") || word.starts_with(b"/proc/")) && is_kernel_path(word))
}

fn redact_assignment(key: &mut [u8], value: &mut [u8], known: &KnownParameters) {
    let name = std::str::from_utf8(key).unwrap_or_default().trim();
    let name = name.strip_prefix("export ").unwrap_or(name).to_owned();
    if !tokens::is_harmless_name(&name) {
        pattern::blank_all(key);
        pattern::blank_all(value);
        return;
    }
    let is_line = LINE_KEYS.contains(&name.as_str()) || name.to_ascii_lowercase().contains("cmdline");
    let (start, end) = inner(value);
    let value = &mut value[start..end];
    if is_line {
        tokens::redact(value, known);
    } else if !is_kept(&name, value) {
        pattern::blank_all(value);
    }
}

/// Start and end of a value without surrounding white space and quotes.
fn inner(value: &[u8]) -> (usize, usize) {
    let is_outside = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'');
    let start = value.iter().position(|byte| !is_outside(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !is_outside(byte)).map_or(start, |at| at + 1);
    (start, end)
}

fn is_kept(name: &str, value: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let contains = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let is_of_kernel = name.starts_with("/sys/") || name.starts_with("/proc/");
    if tokens::is_harmless_value(value) {
        return true;
    }
    let is_secret = |part: &str| {
        SECRET_PARTS.contains(&part) || SECRET_STARTS.iter().any(|start| part.starts_with(start))
    };
    if lower.split(|c: char| !c.is_ascii_alphabetic()).any(is_secret) {
        return false;
    }
    let is_mask = |value: &[u8]| value.iter().all(|byte| byte.is_ascii_hexdigit() || b",-x".contains(byte));
    value.split(u8::is_ascii_whitespace).all(is_number)
        || (contains(CPU_KEYS) && is_mask(value))
        || (WORD_KEYS.contains(&name) && value.len() <= WORD_BYTES_MAX && is_phrase(value))
        || (is_of_kernel && is_word(value))
}

/// True if a word is a number or a list of short numbers.
fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"0x").unwrap_or(word);
    word.len() <= NUMBER_BYTES_MAX && digits.iter().all(|byte| byte.is_ascii_digit() || b",-.".contains(byte))
}

fn is_word(word: &[u8]) -> bool {
    word.len() <= WORD_BYTES_MAX
        && word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.,-".contains(byte))
}

fn is_phrase(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.,:+()/ -".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_catalogue::CATALOGUE;

    fn redacted(path: &str, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        redact(path, &mut bytes, &KnownParameters::of(CATALOGUE));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn settings_keep_names_numbers_and_line_numbers() {
        for (path, text, kept) in [
            (
                "/etc/sysctl.conf",
                "# Ask Jo\n; or Al\nvm.x = 1 # why\n",
                "        \n       \nvm.x = X X XXX\n",
            ),
            (
                "/etc/sysctl.d/a.conf",
                "vm.swappiness = 10\nkernel.core_pattern=|/opt/jo\n",
                "vm.swappiness = 10\nkernel.core_pattern=XXXXXXXX\n",
            ),
            (
                "/etc/os-release",
                "ID=debian\nHOME_URL=\"https://jo\"\n",
                "ID=debian\nHOME_URL=\"XXXXXXXXXX\"\n",
            ),
            ("/etc/tuned/active_profile", "network-latency\n", "network-latency\n"),
            (
                "/etc/tuned/cpu-partitioning-variables.conf",
                "isolated_cores=1-7,9-15\n",
                "isolated_cores=1-7,9-15\n",
            ),
            (
                "/etc/default/grub",
                "GRUB_CMDLINE_LINUX=\"quiet psk=jo nohz_full=1\"\n",
                "GRUB_CMDLINE_LINUX=\"quiet psk=XX nohz_full=1\"\n",
            ),
            (
                "/boot/grub2/grubenv",
                "# GRUB Environment Block\nsaved_entry=abc-5\nkernelopts=ro pass=jo \n####",
                "# GRUB Environment Block\nsaved_entry=XXXXX\nkernelopts=ro pass=XX \n####",
            ),
            (
                "/boot/loader/entries/a.conf",
                "title Jo\noptions root=LABEL=jo quiet\n",
                "XXXXX XX\noptions root=LABEL=XX quiet\n",
            ),
            (
                "/boot/efi/EFI/Linux/a.efi",
                "root=LABEL=jo quiet psk=jo\n6.12.1-amd64\n23239168\n",
                "root=LABEL=XX quiet psk=XX\n6.12.1-amd64\n23239168\n",
            ),
            ("/run/sysctl.d/a.conf", "my.password = 5\n", "my.password = X\n"),
            (
                "/boot/config-6.1",
                "CONFIG_HZ=250\n# CONFIG_X is not set\nCONFIG_CMDLINE=\"pw=jo\"\n# Jo\n",
                "CONFIG_HZ=250\n# CONFIG_X is not set\nCONFIG_CMDLINE=\"XX=XX\"\nX XX\n",
            ),
        ] {
            assert_eq!(redacted(path, text), kept, "{path}");
        }
    }

    #[test]
    fn units_keep_their_headings_and_masks_stay_masks() {
        let path = "/usr/lib/systemd/system/a.service";
        let unit = "# us\n[Unit]\nDescription=x\n [Install] \nAlias=y\n[pass=jo]\n";
        assert_eq!(redacted(path, unit), "\n[Unit]\n\n[Install]\n");
        assert_eq!(redacted(path, ""), "");
        assert_eq!(redacted(path, "nothing"), "\n");
    }

    /// A CPU list is no secret: path, text, what is kept.
    #[test]
    fn lists_of_cpus_are_kept_on_their_lines() {
        let unit = "[Slice]\nDescription=desk jo\nAllowedCPUs=0-3 8,9\nAllowedCPUs=jo\nCPUAffinity=\nEnvironmentFile=/etc/jo\n";
        let kept = "[Slice]\n\nAllowedCPUs=0-3 8,9\n\nCPUAffinity=\n";
        let ban = "[Service]\nEnvironment=\"IRQBALANCE_BANNED_CPULIST=1-3\"\nEnvironment=A=jo\nEnvironmentFile=-/etc/default/irqbalance\n";
        for (path, text, kept) in [
            ("/etc/systemd/system.control/system.slice.d/50-AllowedCPUs.conf", unit, kept),
            ("/etc/systemd/system/desk.service", unit, kept),
            (
                "/etc/systemd/system.conf.d/a.conf",
                "[Manager]\nCPUAffinity=0-3 8\nLogLevel=jo\n",
                "[Manager]\nCPUAffinity=0-3 8\n",
            ),
            ("/etc/systemd/system.conf", "[Manager]\nCPUAffinity=0,8\n", "[Manager]\nCPUAffinity=0,8\n"),
            ("/proc/cmdline", "ro systemd.cpu_affinity=0,8-9", "ro systemd.cpu_affinity=0,8-9"),
            (
                "/usr/lib/systemd/system/irqbalance.service",
                ban,
                "[Service]\nEnvironment=\"IRQBALANCE_BANNED_CPULIST=1-3\"\n\nEnvironmentFile=-/etc/default/irqbalance\n",
            ),
        ] {
            assert_eq!(redacted(path, text), kept, "{path}");
        }
    }
}
