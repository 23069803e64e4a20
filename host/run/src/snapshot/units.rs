//! Number formats that the kernel uses in several places.

/// Parses a flag, "0" or "1".
pub(super) fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// A cache size as in sysfs: "512K", "32M"; a number without a unit is in bytes.
pub(super) fn kernel_size_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) if text.ends_with('K') => (digits, 10),
        Some(digits) if text.ends_with('M') => (digits, 20),
        Some(digits) => (digits, 30),
        None => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// An amount of memory as in /proc/meminfo: "16384 kB", where kB is 1,024 bytes; a bare number is a count.
pub(super) fn meminfo_amount(text: &str) -> Option<u64> {
    match text.strip_suffix("kB") {
        Some(digits) => digits.trim_end().parse::<u64>().ok()?.checked_mul(1024),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes() {
        assert_eq!(kernel_size_bytes("512K"), Some(524_288));
        assert_eq!(kernel_size_bytes("32M"), Some(33_554_432));
        assert_eq!(kernel_size_bytes("64"), Some(64));
        for junk in ["", "K", "-1K", "512 K", "99999999999999999999K", "99999999999999999G"] {
            assert_eq!(kernel_size_bytes(junk), None, "{junk}");
        }
        assert_eq!(meminfo_amount("16 kB"), Some(16_384));
        assert_eq!(meminfo_amount("7"), Some(7));
        assert_eq!(meminfo_amount("7 MB"), None);
    }
}
