//! Formats that the kernel uses in several places.

use crate::Root;
use lowlat_host::Reading;
use serde::de::DeserializeOwned;

/// What an interface answered, or a capture kept of it under this name, as JSON.
pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8], name: &str, expected: &str) -> Reading<T> {
    serde_json::from_slice(bytes)
        .map_or_else(|error| Reading::unparsable(name, &error.to_string(), expected), Reading::Known)
}

/// Reads a flag, "0" or "1".
pub(super) fn read_flag(root: &Root, path: &str) -> Reading<bool> {
    flag(root.read(path), path)
}

/// Parses the flag that was read at `path`.
pub(super) fn flag(text: Reading<String>, path: &str) -> Reading<bool> {
    text.parse(path, "0 or 1", |text| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })
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

/// The bracketed word of a file in sysfs that offers several and puts the current one in brackets, or its only word:
/// `always [madvise] never`.
pub(super) fn chosen_word(root: &Root, path: &str) -> Reading<String> {
    root.read(path).parse(path, "words with the current one in brackets", |text| {
        let bracketed =
            text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word.trim());
        let only = || {
            Some(text)
                .filter(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)))
        };
        bracketed.or_else(only).filter(|word| !word.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

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

    #[test]
    fn the_bracketed_or_only_word_is_taken() {
        let word_of = |text: &str| chosen_word(&TestTree::of(&[("/sys/words", text)]).root(), "/sys/words");
        assert_eq!(word_of("[none] mq-deadline\n").text(), "none");
        assert_eq!(word_of("mq-deadline kyber [bfq] none").text(), "bfq");
        assert_eq!(word_of("none\n").text(), "none");
        for junk in ["", "a b", "?", "]a[", "[]", "["] {
            assert!(matches!(word_of(junk), Reading::Unparsable(_)), "{junk}");
        }
    }
}
