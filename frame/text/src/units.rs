//! Numbers for people: durations, sizes, rates, shares.

/// Formats a duration with three digits in a suitable unit: "873 ns", "4.73 us", "1.20 ms", "61.0 s".
pub fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => scaled(ns as f64 / 1e3, "us"),
        999_500..999_500_000 => scaled(ns as f64 / 1e6, "ms"),
        _ => scaled(ns as f64 / 1e9, "s"),
    }
}

/// Formats a planned duration without trailing zeros: "60 s", "1.5 s".
pub fn span(ns: u64) -> String {
    let text = duration(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Formats a duration that may be a fraction of a nanosecond: "8.2 ns".
pub fn duration_fine(ns: f64) -> String {
    if !ns.is_finite() || ns < 0.0 {
        return "-".to_owned();
    }
    if ns < 100.0 { format!("{ns:.1} ns") } else { duration(whole(ns)) }
}

/// Formats a size in a suitable binary unit: "512 KiB", "251 GiB", "1.5 TiB".
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or_default();
    let text = if value >= 10.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// Formats a whole number with thousands separators: "12,345".
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

/// Formats a rate with about three digits: "0.0164", "4.2", "251", "1,204".
pub fn rate(per_second: f64) -> String {
    match per_second {
        r if !r.is_finite() => "-".to_owned(),
        0.0 => "0".to_owned(),
        r if r < 1.0 => significant(r),
        r if r < 10.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => count(whole(r)),
    }
}

/// Formats a percentage, with two significant digits if it is small: "0.00013 %", "4.21 %", "31 %".
pub fn percent(value: f64) -> String {
    match value {
        v if !v.is_finite() => "-".to_owned(),
        0.0 => "0 %".to_owned(),
        v if v < 1e-6 => "< 0.000001 %".to_owned(),
        v if v < 1.0 => format!("{} %", significant(v)),
        v if v < 10.0 => format!("{v:.2} %"),
        v => format!("{v:.1} %"),
    }
}

/// Formats a value below 1 with two significant digits and no exponent.
fn significant(value: f64) -> String {
    let mut decimals = 2;
    let mut scaled = value;
    while scaled < 0.1 && decimals < 9 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{value:.decimals$}")
}

fn scaled(value: f64, unit: &str) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v if v < 9_999.5 => format!("{v:.0} {unit}"),
        v => format!("{} {unit}", count(whole(v))),
    }
}

/// Returns the nearest whole number; a float outside the range saturates.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates as intended")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// Formats a count with its noun: "1 CPU", "3 CPUs".
pub fn plural(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", count(number))
}

/// The text with a capital letter at its start.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Makes a text from the host safe to print, on one line: see [`lowlat_plain::printable`].
pub fn clean(text: &str) -> String {
    lowlat_plain::printable::line(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_keep_three_digits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (47_312, "47.3 us"),
            (999_499, "999 us"),
            (999_600, "1.00 ms"),
            (3_000_000_000, "3.00 s"),
            (86_400_000_000_000, "86,400 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
        assert_eq!(duration(u64::MAX), "18,446,744,074 s");
        assert_eq!((span(60_000_000_000), span(1_500_000_000)), ("60 s".to_owned(), "1.5 s".to_owned()));
        assert_eq!(duration_fine(8.24), "8.2 ns");
        assert_eq!(duration_fine(f64::NAN), "-");
    }

    #[test]
    fn sizes_rates_and_shares_have_few_digits() {
        assert_eq!(size(16 << 20), "16 MiB");
        assert_eq!((size(1_536 << 30), size(8_190 << 20)), ("1.5 TiB".to_owned(), "8 GiB".to_owned()));
        assert_eq!(size(u64::MAX), "16 EiB");
        assert_eq!(rate(0.016_393), "0.016");
        assert_eq!(rate(1_204.4), "1,204");
        assert_eq!(percent(0.000_134), "0.00013 %");
        assert_eq!(percent(4.213), "4.21 %");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(plural(1, "CPU"), "1 CPU");
    }

    #[test]
    fn no_escape_sequence_passes() {
        assert_eq!(clean("a\x1b[31mb\u{202e}c\nd"), "a\\u{1b}[31mb\\u{202e}c d");
        assert_eq!(clean("plain"), "plain");
    }
}
