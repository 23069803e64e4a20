//! Arguments that more than one command takes.

use crate::labels::LabelArgs;
use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use jiff::SignedDuration;
use lowlat_host::{CpuSet, Labels};
use lowlat_jitter_run::jitter::JitterOptions;
use lowlat_lang::Language;
use std::{ops::RangeInclusive, time::Duration};

/// The arguments of commands that write a page.
#[derive(Debug, Clone, Args)]
pub struct PageArgs {
    /// Write the page in this language
    #[arg(long, value_name = "LANG", default_value = "en", value_parser = word(Language::ALL.iter().map(|of| (of.code(), *of))))]
    lang: Language,
    #[command(flatten)]
    pub labels: LabelArgs,
}

impl PageArgs {
    /// Returns an English page in the language asked for, with the labels of what it shows.
    pub fn page(&self, page: String, labels: &Labels) -> String {
        lowlat_text::page::labelled(self.lang.page(page), labels)
    }
}

/// Takes one of these words, each of which stands for a value.
pub fn word<W: Into<PossibleValue>, T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (W, T)>,
) -> impl TypedValueParser<Value = T> {
    let (words, values): (Vec<PossibleValue>, Vec<T>) =
        words.into_iter().map(|(word, value)| (word.into(), value)).unzip();
    let known = words.clone();
    PossibleValuesParser::new(words).try_map(move |given| {
        let at = known.iter().position(|word| word.matches(&given, false));
        at.and_then(|at| values.get(at).cloned()).ok_or("no such word")
    })
}

/// Parses the CPUs to measure from a list such as 1-7,9-15.
pub fn cpus(text: &str) -> Result<CpuSet, String> {
    JitterOptions::parse_cpus(text).map_err(|error| error.to_string())
}

/// Parses a duration such as 610s, 10m, 1h30m or 250ms.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span: SignedDuration = text.parse().map_err(|_| {
        format!("\"{text}\" is not a duration; write one with its unit, such as 10s, 10m or 24h")
    })?;
    Duration::try_from(span)
        .map_err(|_| format!("\"{text}\" is negative; write a positive duration, such as 10s"))
}

/// Parses a duration in a range, which is `said` in words.
pub fn duration_within(text: &str, range: RangeInclusive<Duration>, said: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if range.contains(&time) { Ok(time) } else { Err(format!("\"{text}\": expected {said}")) }
}

/// Parses a short duration such as 100ns or 5us, and returns nanoseconds.
pub fn time_ns(text: &str) -> Result<u64, String> {
    if text.bytes().all(|byte| byte == b'0') {
        return Err(format!("\"{text}\" has no unit; write a time such as 100ns, 5us or 1ms"));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("\"{text}\" has no unit; write {text}ns or {text}us"));
    }
    let span = duration(text).map_err(|_| {
        format!("\"{text}\" is not a duration; write one with its unit, such as 100ns, 5us or 1ms")
    })?;
    u64::try_from(span.as_nanos()).map_err(|_| format!("\"{text}\" is too long; the useful maximum is 1h"))
}

/// Parses a size such as 512M or 16G, and returns bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(digits) if text.ends_with('K') => (digits, 10),
        Some(digits) if text.ends_with('M') => (digits, 20),
        Some(digits) if text.ends_with('G') => (digits, 30),
        Some(digits) => (digits, 40),
        None => (text, 0),
    };
    let size = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    size.filter(|bytes| *bytes > 0).ok_or_else(|| format!("{text:?}: expected a size such as 512M or 16G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("512M"), Ok(512 << 20));
        assert_eq!(bytes("16G"), Ok(16 << 30));
        assert_eq!((bytes("1T"), bytes("4K"), bytes("7")), (Ok(1 << 40), Ok(4096), Ok(7)));
        for wrong in ["", "M", "-1M", "0G", "1.5G", "999999999T", "1MB"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(duration("610s"), Ok(Duration::from_secs(610)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("610").unwrap_err().contains("with its unit"));
        assert!(duration("-5s").unwrap_err().contains("is negative"));
        assert_eq!((time_ns("100ns"), time_ns("5us"), time_ns("0ns")), (Ok(100), Ok(5_000), Ok(0)));
        assert_eq!(time_ns("100").unwrap_err(), "\"100\" has no unit; write 100ns or 100us");
        for text in ["", "0", "00"] {
            assert!(time_ns(text).unwrap_err().contains("100ns, 5us or 1ms"), "0ns would be refused next");
        }
        assert!(time_ns("fast").unwrap_err().contains("100ns, 5us or 1ms"));
    }
}
