//! Parses the output of sfnt-pingpong.

use super::{COLUMNS, HeaderLine, SfntLog, SfntRow};
use crate::pingpong::Figures;
use serde::Serialize;
use thiserror::Error;

/// Longest file accepted, in bytes.
pub const BYTES_MAX: usize = 16 << 20;
/// Longest part of a line that an error quotes, in characters.
const QUOTED_CHARS_MAX: usize = 60;

/// Reason why a text is not output of sfnt-pingpong.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SfntError {
    /// The text is longer than [`BYTES_MAX`].
    #[error("{0} bytes; output of sfnt-pingpong has at most {BYTES_MAX}")]
    TooLong(usize),
    /// No line has the heads of the columns.
    #[error("no line has the columns \"size mean min median max %ile stddev iter\"")]
    NoColumns,
    /// A row is not eight numbers.
    /// - `line`: number of the line, from 1.
    /// - `text`: quoted start of the line.
    #[error("line {line} is not a row of eight whole numbers, none negative: \"{text}\"")]
    Row { line: usize, text: String },
    /// The figures of a row contradict each other, or it has no heads of columns.
    /// - `line`: number of the line, from 1.
    /// - `why`: problem, such as "it has no iterations".
    #[error("line {line} is not sound: {why}")]
    Unsound { line: usize, why: &'static str },
}

/// Parses the output of one or more runs. Columns may be separated by any white space, as in tables copied from web
/// pages. A line of a table that is no row, or a damaged one, is left out and named in [`SfntLog::damaged`].
///
/// # Errors
/// [`SfntError`] if the text has no table, or no row of it is whole.
pub fn parse(text: &str) -> Result<Vec<SfntLog>, SfntError> {
    if text.len() > BYTES_MAX {
        return Err(SfntError::TooLong(text.len()));
    }
    let (mut logs, mut log, mut is_in_table) = (Vec::new(), SfntLog::default(), false);
    // Text below rows: damaged rows if more rows follow, else what is above the next table.
    let mut pending: Vec<(usize, &str)> = Vec::new();
    for (line, text) in (1_usize..).zip(text.lines().map(str::trim_end)) {
        if text.trim_matches(['#', ' ', '\t']).is_empty() {
            continue;
        }
        let (percentile, row) = (percentile_of(text), row(line, text));
        let is_header = text.starts_with('#') && text.contains([':', '=']) && !is_remark(text);
        if is_in_table && (percentile.is_some() || is_header) {
            logs.push(std::mem::take(&mut log));
            pending.drain(..).for_each(|(_, text)| log.add_text(text));
            is_in_table = false;
        }
        if let Some(percentile) = percentile {
            is_in_table = true;
            if !percentile.is_empty() && log.value("percentile").is_none() {
                log.add_text(&format!("# percentile={percentile}"));
            }
        } else if row.is_ok() && !is_in_table {
            log.damaged.push(SfntError::Unsound { line, why: "no heads of columns are above it" });
        } else if row.is_ok() || (is_in_table && is_like_row(text)) {
            log.damaged.extend(pending.drain(..).map(|(line, text)| row_error(line, text)));
            row.map_or_else(|error| log.damaged.push(error), |row| log.rows.push(row));
        } else if is_in_table && !is_remark(text) {
            pending.push((line, text));
        } else {
            log.add_text(text);
        }
    }
    if log.rows.is_empty() {
        log.damaged.extend(pending.into_iter().map(|(line, text)| row_error(line, text)));
    }
    if is_in_table {
        logs.push(log);
    } else if let Some(last) = logs.last_mut() {
        last.damaged.extend(log.damaged);
    }
    match logs.iter().find_map(|log| log.damaged.first()) {
        _ if logs.is_empty() => Err(SfntError::NoColumns),
        Some(error) if logs.iter().all(|log| log.rows.is_empty()) => Err(error.clone()),
        _ => Ok(logs),
    }
}

impl SfntLog {
    /// Adds a line that is above a table.
    fn add_text(&mut self, text: &str) {
        if text.starts_with('#') {
            self.header.push(header_line(text));
        } else {
            self.banner.push(text.to_owned());
        }
    }
}

/// The number in the sixth head of the columns, as in the "99%ile" of 1.0.0 and 1.1.0, if the line has the heads.
pub(crate) fn percentile_of(text: &str) -> Option<&str> {
    let heads: Vec<&str> = text.trim_start_matches('#').split_whitespace().collect();
    let percentile = heads.get(5)?.strip_suffix("%ile")?;
    let plain = heads.iter().map(|head| if head.ends_with("%ile") { "%ile" } else { head });
    plain.eq(COLUMNS).then_some(percentile)
}

/// True if a line that is no row is probably a damaged one.
fn is_like_row(text: &str) -> bool {
    let numbers = text.trim_start_matches('#').split_whitespace().filter(|cell| cell.parse::<f64>().is_ok());
    text.starts_with(|first: char| first.is_whitespace() || first.is_ascii_digit() || "+-".contains(first))
        || numbers.count() >= COLUMNS.len() / 2
}

/// True if a line below the table is a remark on it, such as "# WARNING: tsc_hz changed".
fn is_remark(text: &str) -> bool {
    text.trim_start_matches(['#', ' ']).starts_with("WARNING")
}

fn header_line(text: &str) -> HeaderLine {
    let text = text.trim_start_matches('#').trim();
    let colon = text.find(": ").or_else(|| text.strip_suffix(':').map(str::len));
    // The first separator counts: values contain both.
    match (colon, text.find('=')) {
        (Some(colon), equals) if equals.is_none_or(|equals| colon < equals) => line(text, colon, false),
        (_, Some(equals)) => line(text, equals, true),
        _ => HeaderLine { key: text.to_owned(), value: String::new(), is_assigned: false },
    }
}

fn line(text: &str, at: usize, is_assigned: bool) -> HeaderLine {
    let (key, rest) = text.split_at(at);
    let value = rest.get(1..).unwrap_or_default();
    let value = if is_assigned { value } else { value.strip_prefix(' ').unwrap_or(value) };
    HeaderLine { key: key.to_owned(), value: value.to_owned(), is_assigned }
}

fn row(line: usize, text: &str) -> Result<SfntRow, SfntError> {
    let cells: Option<Vec<u64>> = text.split_whitespace().map(|cell| cell.parse().ok()).collect();
    let Some(&[size, mean_ns, min_ns, median_ns, max_ns, percentile_ns, stddev_ns, iterations]) =
        cells.as_deref()
    else {
        return Err(row_error(line, text));
    };
    let size_bytes = u32::try_from(size).map_err(|_| row_error(line, text))?;
    let unsound = |why| Err(SfntError::Unsound { line, why });
    let is_within = |ns: u64| (min_ns..=max_ns).contains(&ns);
    if iterations == 0 {
        return unsound("it has no iterations");
    }
    if !(is_within(mean_ns) && is_within(median_ns) && is_within(percentile_ns)) {
        return unsound("a figure is outside of min and max");
    }
    let figures = Figures { mean_ns, min_ns, median_ns, max_ns, percentile_ns, stddev_ns, iterations };
    Ok(SfntRow { size_bytes, figures })
}

fn row_error(line: usize, text: &str) -> SfntError {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    SfntError::Row { line, text: text.chars().take(QUOTED_CHARS_MAX).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sfnt::reference;

    const REAL_1_6: &str = include_str!("../../tests-data/sfnt-pingpong-1.6.0.txt");

    #[test]
    fn the_published_tables_are_read() {
        let logs = reference::published().unwrap();
        let [tcp, udp] = logs.as_slice() else { panic!("{}", logs.len()) };
        assert_eq!((tcp.rows.len(), udp.rows.len()), (17, 19));
        let row = tcp.rows.iter().find(|row| row.size_bytes == 32).unwrap();
        let expected = Figures {
            mean_ns: 6_888,
            min_ns: 6_118,
            median_ns: 6_827,
            max_ns: 15_773,
            percentile_ns: 7_875,
            stddev_ns: 384,
            iterations: 723_000,
        };
        assert_eq!(row.figures, expected);
        assert_eq!(udp.rows[7].figures.percentile_ns, 6_553);
        for log in [tcp, udp] {
            assert_eq!((log.percentile(), log.is_round_trip()), (Some(99.0), false));
            assert_eq!(log.value("version"), Some("1.5.0"));
            assert_eq!(log.values("lspci").count(), 3);
            assert_eq!(
                (log.value("EF_POLL_USEC"), log.value("server LD_PRELOAD")),
                (Some("100000"), Some("libonload.so"))
            );
            assert_eq!(
                (log.value("enp5s0"), log.values("enp1s0f1").last()),
                (Some("driver: r8169"), Some("bus-info: 0000:01:00.1"))
            );
            assert!(log.banner[0].contains("Using OpenOnload 201811"));
        }
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        let tcp = &reference::published().unwrap()[0];
        assert_eq!(tcp.to_string(), include_str!("reference/tcp.txt"));
        assert_eq!(parse(REAL_1_6).unwrap()[0].to_string(), REAL_1_6);
    }

    #[test]
    fn output_of_1_6_is_read_in_any_order_of_its_header() {
        let logs = parse(REAL_1_6).unwrap();
        assert_eq!((logs.len(), logs[0].rows.len()), (1, 3));
        assert_eq!(logs[0].value("reporting"), Some("1/2 RTT"));
        assert!(parse(&REAL_1_6.replace("1/2 RTT", "RTT")).unwrap()[0].is_round_trip());
    }

    #[test]
    fn several_runs_in_one_file_stay_apart() {
        let twice = format!("{REAL_1_6}{REAL_1_6}");
        let logs = parse(&twice).unwrap();
        assert_eq!((logs.len(), logs[0] == logs[1]), (2, true));
        let remarked = format!("{REAL_1_6}# WARNING: tsc_hz changed to 1 on recheck\n");
        let logs = parse(&remarked).unwrap();
        assert_eq!((logs.len(), logs[0].value("WARNING")), (1, Some("tsc_hz changed to 1 on recheck")));
    }

    #[test]
    fn damage_is_named_with_its_line() {
        let table =
            |row: &str| parse(&format!("#\tsize\tmean\tmin\tmedian\tmax\t%ile\tstddev\titer\n{row}\n"));
        assert_eq!(parse(""), Err(SfntError::NoColumns));
        assert_eq!(parse("1 2 3 4 5 6 7 8\n"), Err(SfntError::NoColumns));
        assert!(matches!(table("1 2 3"), Err(SfntError::Row { line: 2, .. })));
        assert!(matches!(table("nonsense"), Err(SfntError::Row { line: 2, .. })));
        assert!(matches!(table("1 2 3 4 5 6 7 99999999999999999999"), Err(SfntError::Row { .. })));
        assert!(matches!(table("1 5 5 5 5 5 0 0"), Err(SfntError::Unsound { line: 2, .. })));
        assert!(matches!(table("1 9 5 5 5 5 0 3"), Err(SfntError::Unsound { .. })));
        assert_eq!(table("").unwrap()[0].rows, []);
        assert_eq!(parse(&"x".repeat(BYTES_MAX + 1)), Err(SfntError::TooLong(BYTES_MAX + 1)));
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "(#?[ \\t]?[a-z0-9:=%. \\t]{0,40}\n){0,12}", cut in 0usize..2_000) {
            let _ = parse(&text);
            let damaged: String = REAL_1_6.chars().take(cut).chain(text.chars()).collect();
            let _ = parse(&damaged).map(|logs| logs.iter().map(ToString::to_string).collect::<String>());
        }
    }
}
