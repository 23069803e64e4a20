//! Compares two spellings of a value by meaning.

use lowlat_host::CpuSet;
use std::collections::BTreeSet;

/// True if the kernel would read both texts as the same value: equal words, equal numbers (`0x10` = `16`), equal CPU
/// lists (`1,2,3` = `1-3`), equal sizes (`2MB` = `2M` = `2097152`), or equal flags in any order before a list
/// (`domain,managed_irq,1-3` = `managed_irq,domain,1,2,3`). White space is folded.
pub fn same_meaning(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if a.eq_ignore_ascii_case(b) || a.split_whitespace().eq(b.split_whitespace()) {
        return true;
    }
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a == b;
    }
    if let (Some(a), Some(b)) = (size_bytes(a), size_bytes(b)) {
        return a == b;
    }
    let ((flags_a, list_a), (flags_b, list_b)) = (flags_and_list(a), flags_and_list(b));
    let is_list = |text: &str| text.contains([',', '-']) && text.starts_with(|c: char| c.is_ascii_digit());
    let is_flagged = !flags_a.is_empty() && !list_a.is_empty();
    (is_flagged || is_list(a) || is_list(b))
        && flags_a == flags_b
        && matches!((CpuSet::parse_list(list_a), CpuSet::parse_list(list_b)), (Ok(a), Ok(b)) if a == b)
}

/// Splits a comma-separated text into the words before the first digit, and the remainder.
fn flags_and_list(text: &str) -> (BTreeSet<&str>, &str) {
    let (flags, list) = text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len()));
    (flags.split(',').filter(|flag| !flag.is_empty()).collect(), list)
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses a size as the kernel's `memparse` does: a number followed by K, M, G or T. Text after the letter is
/// ignored.
pub fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..digits].parse().ok()?;
    let shift = match text[digits..].chars().next().map(|c| c.to_ascii_uppercase()) {
        None => 0,
        Some('K') => 10,
        Some('M') => 20,
        Some('G') => 30,
        Some('T') => 40,
        Some(_) => return None,
    };
    count.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_value_are_the_same() {
        for (a, b) in [
            ("1,2,3", "1-3"),
            ("2MB", "2M"),
            ("2M", "2097152"),
            ("0x10", "16"),
            ("on", "ON"),
            ("1\t2", "1 2"),
            ("-1", "-1\n"),
            ("managed_irq,domain,1-3", "domain,managed_irq,1,2,3"),
            ("0,8", "8,0"),
        ] {
            assert!(same_meaning(a, b), "{a} {b}");
        }
        for (a, b) in [
            ("domain,1-3", "1-3"),
            ("domain,1-3", "domain,1-4"),
            ("domain", "managed_irq"),
            ("1", "2"),
            ("1-3", "1-4"),
            ("2M", "2G"),
            ("on", "off"),
            ("", "0"),
            ("3", "1-3"),
            ("-1", "1"),
        ] {
            assert!(!same_meaning(a, b), "{a} {b}");
        }
    }
}
