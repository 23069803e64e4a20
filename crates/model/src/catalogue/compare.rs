//! Whether two spellings mean the same value.

use crate::CpuSet;

/// Whether the kernel would take both texts for the same value: equal words, equal numbers (`0x10` = `16`),
/// equal CPU lists (`1,2,3` = `1-3`), equal sizes (`2MB` = `2M` = `2097152`), white space folded.
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
    let is_list = |text: &str| text.contains([',', '-']) && text.starts_with(|c: char| c.is_ascii_digit());
    if is_list(a) || is_list(b) {
        if let (Ok(a), Ok(b)) = (CpuSet::parse_list(a), CpuSet::parse_list(b)) {
            return a == b;
        }
    }
    false
}

fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A size as the kernel's `memparse` reads it: a number and K, M, G or T; what follows the letter is ignored.
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
        ] {
            assert!(same_meaning(a, b), "{a} {b}");
        }
        for (a, b) in
            [("1", "2"), ("1-3", "1-4"), ("2M", "2G"), ("on", "off"), ("", "0"), ("3", "1-3"), ("-1", "1")]
        {
            assert!(!same_meaning(a, b), "{a} {b}");
        }
    }
}
