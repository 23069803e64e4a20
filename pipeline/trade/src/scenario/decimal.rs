//! Decimal numbers as integers of a smaller unit, without a float in between.

/// Parses `12.5` with 4 decimals as 125000. `None` if it is no decimal number, has more digits after the point than
/// that (apart from zeros), or does not fit.
pub fn parse(text: &str, decimals: u32) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || digits.ends_with('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let missing = decimals.checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let whole: i64 = whole.parse().ok()?;
    let fraction: i64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let size = whole
        .checked_mul(10_i64.checked_pow(decimals)?)?
        .checked_add(fraction.checked_mul(10_i64.checked_pow(missing)?)?)?;
    Some(if is_negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        let cases = [
            ("12.5", Some(125_000)),
            ("0.0001", Some(1)),
            ("-3", Some(-30_000)),
            ("-0.5", Some(-5_000)),
            ("1.50000", Some(15_000)),
            ("0.00001", None),
            ("1e5", None),
            ("1.", None),
            (".5", None),
            ("", None),
            ("-", None),
            ("+1", None),
            ("99999999999999999999", None),
            ("nan", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text, 4), expected, "{text}");
        }
        assert_eq!(parse("7", 0), Some(7));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number in -1_000_000_000_000_i64..1_000_000_000_000) {
            let sign = if number < 0 { "-" } else { "" };
            let size = number.unsigned_abs();
            let text = format!("{sign}{}.{:04}", size / 10_000, size % 10_000);
            prop_assert_eq!(parse(&text, 4), Some(number));
        }
    }
}
