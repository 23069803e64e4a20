//! A recording, its damage, its records and the difference of two recordings, as text.

use anstyle::Style;
use lowlat_host::printable::line as one_line;
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_heading, add_painted, add_wrapped, columns, cut, paint, usable,
};
use lowlat_text::units::{clean, count, duration, plural, size};

/// One stream of a recording.
#[derive(Debug, Clone, Default)]
pub struct JournalStream {
    pub name: String,
    /// Records that can be read.
    pub records: u64,
    /// First and last sequence; `None` without records.
    pub sequences: Option<(u64, u64)>,
    pub gaps: u64,
    /// Records missing in the gaps.
    pub lost: u64,
    /// Bytes of its data blocks.
    pub bytes: u64,
    /// Time from the first to the last record by generation time, ns; `None` without records.
    pub length_ns: Option<u64>,
}

/// Summary of a recording and its damage.
#[derive(Debug, Clone, Default)]
pub struct JournalView {
    pub folder: String,
    /// True if a recorder is writing it.
    pub is_live: bool,
    /// True if every record was checked.
    pub is_checked: bool,
    pub files: usize,
    /// Total bytes of the data files.
    pub bytes: u64,
    pub streams: Vec<JournalStream>,
    pub gaps: Vec<String>,
    /// Descriptions of damaged places: file, offset, problem.
    pub damages: Vec<(String, String)>,
    pub damage_count: u64,
    /// Missing records that were published while a recorder ran.
    pub missing: u64,
    /// Problems of index files, which cost no records.
    pub index_problems: Vec<String>,
}

/// Largest number of gaps and damaged places listed.
const SHOWN_MAX: usize = 20;
/// Longest stream name shown, in characters.
const NAME_CHARS_MAX: usize = 24;

/// A recording and its streams, with gaps and damage.
pub fn journal_text(view: &JournalView, width: usize) -> String {
    let width = usable(width);
    let mut out = paint(BOLD, &clean(&view.folder));
    let state = if view.is_live { ", being written" } else { "" };
    let records = count(view.streams.iter().map(|stream| stream.records).sum());
    let (streams, files) = (plural(view.streams.len(), "stream"), plural(view.files, "file"));
    out.push_str(&format!("\n{records} records of {streams} in {files}, {}{state}\n", size(view.bytes)));
    if !view.streams.is_empty() {
        add_heading(&mut out, "Streams");
        out.push_str(&columns(&stream_rows(view), &[1, 2, 3, 4, 5, 6], 2));
    }
    if !view.gaps.is_empty() {
        let gaps: u64 = view.streams.iter().map(|stream| stream.gaps).sum();
        add_heading(&mut out, "Missing");
        add_list(&mut out, &view.gaps, gaps, width);
    }
    if view.is_checked {
        add_damages(&mut out, view, width);
    } else {
        out.push('\n');
        let text = "Counted from block headers; `lowlat journal verify` checks every byte.";
        add_painted(&mut out, DIM, text, 0, width);
    }
    out
}

fn stream_rows(view: &JournalView) -> Vec<Vec<String>> {
    let head = ["stream", "records", "first", "last", "lost", "bytes", "time"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(view.streams.iter().map(|stream| {
        let sequence = |at: fn((u64, u64)) -> u64| {
            stream.sequences.map_or_else(|| "-".to_owned(), |both| at(both).to_string())
        };
        vec![
            cut(&clean(&stream.name), NAME_CHARS_MAX),
            count(stream.records),
            sequence(|both| both.0),
            sequence(|both| both.1),
            count(stream.lost),
            size(stream.bytes),
            stream.length_ns.map_or_else(|| "-".to_owned(), duration),
        ]
    }));
    rows
}

fn add_list(out: &mut String, lines: &[String], all: u64, width: usize) {
    for line in lines.iter().take(SHOWN_MAX) {
        add_wrapped(out, &clean(line), 2, width);
    }
    let more = all.saturating_sub(lines.len().min(SHOWN_MAX) as u64);
    if more > 0 {
        out.push_str(&format!("  {}\n", paint(DIM, &format!("and {} more (--json lists all)", count(more)))));
    }
}

fn add_damages(out: &mut String, view: &JournalView, width: usize) {
    if view.damage_count == 0 && view.missing == 0 {
        out.push_str(&format!("\n{}\n", paint(GREEN, "Every byte is intact.")));
    } else if view.damage_count == 0 {
        let text = format!("Every byte is intact, but records are missing: {}.", count(view.missing));
        out.push_str(&format!("\n{}\n", paint(YELLOW, &text)));
    } else {
        add_heading(out, "Damaged");
        for (place, what) in view.damages.iter().take(SHOWN_MAX) {
            out.push_str(&format!("  {}\n", paint(RED, &clean(place))));
            add_wrapped(out, &clean(what), 4, width);
        }
        let more = view.damage_count.saturating_sub(view.damages.len().min(SHOWN_MAX) as u64);
        if more > 0 {
            out.push_str(&format!("  and {} more (--json lists all)\n", count(more)));
        }
        let records = view.streams.iter().map(|stream| stream.records).sum();
        let text = format!(
            "{} records are still readable. Every command reads them and skips damaged places.",
            count(records)
        );
        out.push('\n');
        add_wrapped(out, &text, 0, width);
    }
    for problem in &view.index_problems {
        out.push_str(&paint(YELLOW, "index: "));
        add_wrapped(out, &clean(problem), 0, width);
    }
}

/// One record of a recording.
#[derive(Debug, Clone, Default)]
pub struct JournalLine {
    /// Generation time: a time of day, or nanoseconds.
    pub time: String,
    pub stream: String,
    pub sequence: u64,
    /// Names and values of its fields, or its bytes.
    pub fields: Vec<(&'static str, String)>,
}

/// One line per record, never truncated, because programs read it too. With a `width` it continues on indented
/// lines, broken between fields.
pub fn journal_line(line: &JournalLine, width: Option<usize>) -> String {
    let mut out = String::with_capacity(256);
    // Programs need no styles, which cost more than the rest of a line.
    let add = |out: &mut String, style: Style, text: &str| match width {
        Some(_) => out.push_str(&paint(style, text)),
        None => out.push_str(text),
    };
    let (time, stream, sequence) = (one_line(&line.time), one_line(&line.stream), line.sequence.to_string());
    out.push_str(&time);
    out.push(' ');
    add(&mut out, BOLD, &stream);
    out.push(' ');
    out.push_str(&sequence);
    let chars = |text: &str| text.chars().count();
    let mut at = chars(&time) + chars(&stream) + chars(&sequence) + 2;
    for (name, value) in &line.fields {
        let value = one_line(value);
        if let Some(width) = width {
            let field = 2 + chars(name) + chars(&value);
            if at + field > width {
                out.push_str("\n   ");
                at = 3;
            }
            at += field;
        }
        out.push(' ');
        add(&mut out, DIM, name);
        add(&mut out, DIM, "=");
        out.push_str(&value);
    }
    out
}

/// A line in place of missing or damaged records.
pub fn journal_notice(text: &str) -> String {
    paint(YELLOW, &format!("-- {}", clean(text)))
}

/// Distribution of latencies on one side, or of their change.
#[derive(Debug, Clone, Default)]
pub struct JournalTimes {
    /// Name of the measured value.
    pub name: String,
    pub count: u64,
    /// Smallest, p50, p90, p99, p99.9, largest, ns; `None` where there are too few values.
    pub values_ns: [Option<i64>; 6],
}

#[derive(Debug, Clone, Default)]
pub struct JournalDifference {
    /// Kind of the compared items, such as "orders".
    pub what: String,
    /// Names of the two sides.
    pub names: [String; 2],
    /// Numbers of items: on each side, and on both.
    pub counts: [u64; 3],
    /// Numbers of missing, extra and changed items.
    pub differing: [u64; 3],
    /// The first items that only the left side has.
    pub missing: Vec<String>,
    /// The first items that only the right side has.
    pub extra: Vec<String>,
    /// The first items that changed.
    pub changed: Vec<String>,
    pub times: Vec<JournalTimes>,
    /// Sentences on limits of the comparison.
    pub notes: Vec<String>,
}

/// The difference of two recordings.
pub fn journal_diff_text(difference: &JournalDifference, width: usize) -> String {
    let width = usable(width);
    let what = &difference.what;
    let mut out = String::new();
    for ((side, name), items) in ["left: ", "right:"].iter().zip(&difference.names).zip(difference.counts) {
        add_wrapped(&mut out, &format!("{side} {}: {} {what}", clean(name), count(items)), 0, width);
    }
    out.push_str(&format!("in both: {}\n", count(difference.counts[2])));
    let lists = [
        ("Only on the left", &difference.missing),
        ("Only on the right", &difference.extra),
        ("Changed", &difference.changed),
    ];
    for ((title, lines), all) in lists.into_iter().zip(difference.differing) {
        if all > 0 {
            add_heading(&mut out, &format!("{title}: {}", count(all)));
            let all = if title == "Changed" { lines.len() as u64 } else { all };
            add_list(&mut out, lines, all, width);
        }
    }
    if difference.differing == [0; 3] {
        out.push_str(&paint(GREEN, &format!("Both have the same {what} with the same contents.")));
        out.push('\n');
    }
    let mut rows =
        vec![["", "count", "min", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).to_vec()];
    for times in difference.times.iter().filter(|times| times.count > 0) {
        let mut row = vec![times.name.clone(), count(times.count)];
        row.extend(times.values_ns.map(|value| value.map_or_else(|| "-".to_owned(), signed)));
        rows.push(row);
    }
    if rows.len() > 1 {
        add_heading(&mut out, "From cause to order");
        out.push_str(&columns(&rows, &[1, 2, 3, 4, 5, 6, 7], 2));
    }
    for note in &difference.notes {
        add_wrapped(&mut out, &clean(note), 0, width);
    }
    out
}

fn signed(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", duration(ns.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn view() -> JournalView {
        JournalView {
            folder: "/recordings/monday".to_owned(),
            is_live: false,
            is_checked: true,
            files: 2,
            bytes: 3 << 20,
            streams: vec![JournalStream {
                name: "md\u{1b}[2J".to_owned(),
                records: 1_234_567,
                sequences: Some((0, 1_300_000)),
                gaps: 30,
                lost: 65_434,
                bytes: 2 << 20,
                length_ns: Some(61_000_000_000),
            }],
            gaps: (0..25).map(|at| format!("md: {at} to {at}")).collect(),
            damages: vec![("00000001.journal, byte 4096".to_owned(), "no block begins here; ".repeat(6))],
            damage_count: 1,
            missing: 65_434,
            index_problems: Vec::new(),
        }
    }

    #[test]
    fn a_recording_fits_a_narrow_terminal_without_cutting_numbers() {
        let text = plain(&journal_text(&view(), 80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("1,234,567") && text.contains("byte 4096") && text.contains("and 10 more"));
        assert!(!text.contains('\u{1b}'));
        let lossy = JournalView { damages: vec![], damage_count: 0, ..view() };
        let told = plain(&journal_text(&lossy, 80));
        assert!(told.contains("intact, but records are missing: 65,434."), "{told}");
        let whole = JournalView { missing: 0, ..lossy };
        assert!(plain(&journal_text(&whole, 80)).contains("Every byte is intact."));
        let quick = JournalView { is_checked: false, ..whole };
        let quick = plain(&journal_text(&quick, 80));
        assert!(!quick.contains("Every byte") && quick.contains("journal verify"), "{quick}");
        assert!(quick.lines().all(|line| line.chars().count() <= 80), "{quick}");
    }

    #[test]
    fn a_record_wraps_only_in_a_narrow_terminal() {
        let field = |at: usize| ("a_field", "x".repeat(at));
        let line = JournalLine {
            time: "2026-11-22T03:31:11.266117461Z".to_owned(),
            stream: "td".to_owned(),
            sequence: 4797,
            fields: (0..16).map(field).collect(),
        };
        let (whole, wrapped) = (plain(&journal_line(&line, None)), plain(&journal_line(&line, Some(80))));
        assert_eq!(whole.lines().count(), 1);
        assert!(
            wrapped.lines().count() > 1 && wrapped.lines().all(|line| line.chars().count() <= 80),
            "{wrapped}"
        );
        assert!(wrapped.split_whitespace().eq(whole.split_whitespace()), "nothing is left out");
    }

    #[test]
    fn a_difference_lists_what_differs_and_no_percentile_of_too_few_values() {
        let times = JournalTimes {
            name: "change".to_owned(),
            count: 12,
            values_ns: [Some(-1_500), Some(20), None, None, None, Some(3_000)],
        };
        let difference = JournalDifference {
            what: "orders".to_owned(),
            names: ["a".to_owned(), "b".to_owned()],
            counts: [12, 12, 11],
            differing: [1, 1, 0],
            missing: vec!["orders.a 7".to_owned()],
            extra: vec!["orders.a 8".to_owned()],
            times: vec![times],
            ..JournalDifference::default()
        };
        let text = plain(&journal_diff_text(&difference, 80));
        assert!(text.contains("Only on the left: 1\n  orders.a 7"), "{text}");
        assert!(text.contains("-1.50 us") && !text.contains("same orders"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}
