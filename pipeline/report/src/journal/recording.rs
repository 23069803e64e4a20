//! A recording, its damage, its records and the difference of two recordings, as text.

use anstyle::Style;
use lowlat_host::printable::line as one_line;
use lowlat_journal::{
    damage::{DamagedPlace, Problem},
    diff::{Difference, Key},
    layout::manifest::StreamEntry,
    read::{Gap, JournalVerification},
};
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_heading, add_painted, add_wrapped, columns, cut, paint, usable,
};
use lowlat_text::units::{clean, count, duration, plural, size};
use std::path::Path;

/// Largest number of gaps and damaged places listed.
const SHOWN_MAX: usize = 20;
/// Longest stream name shown, in characters.
const NAME_CHARS_MAX: usize = 24;

/// Name of a stream, or its number if it has no name.
pub fn journal_stream_name(streams: &[StreamEntry], stream: u32) -> String {
    let entry = usize::try_from(stream).ok().and_then(|at| streams.get(at));
    entry.map_or_else(|| format!("stream-{stream}"), |entry| entry.name.clone())
}

/// Describes a gap, with the name of its stream.
pub fn journal_gap(streams: &[StreamEntry], gap: &Gap) -> String {
    let (name, count, why) = (journal_stream_name(streams, gap.stream), gap.count(), gap.why());
    let records = if count == 1 { "record" } else { "records" };
    format!("{name}: {count} {records}, {} to {}: {why}", gap.from, gap.to - 1)
}

/// Describes a problem, with names of streams.
fn problem(streams: &[StreamEntry], problem: &Problem) -> String {
    match problem {
        Problem::Record { stream, sequence } => format!(
            "{}: record {sequence} is damaged; earlier records of its block are intact, later ones are lost",
            journal_stream_name(streams, *stream)
        ),
        Problem::Order { stream, found, expected } => format!(
            "{}: block skipped: it starts with record {found}, expected {expected} or later",
            journal_stream_name(streams, *stream)
        ),
        other => other.to_string(),
    }
}

/// Describes a damaged place, with its file and offset.
pub fn journal_damage(streams: &[StreamEntry], damage: &DamagedPlace) -> String {
    format!("{} at byte {}: {}", damage.file.display(), damage.offset, problem(streams, &damage.problem))
}

/// A recording and its streams, with gaps and damage; `streams` has their names.
pub fn journal_text(known: &JournalVerification, streams: &[StreamEntry], width: usize) -> String {
    let width = usable(width);
    let mut out = paint(BOLD, &clean(&known.folder.display().to_string()));
    let state = if known.is_live { ", being written" } else { "" };
    let (of, files) = (plural(known.streams.len(), "stream"), plural(known.files.len(), "file"));
    let (records, bytes) = (count(known.records()), size(known.files.iter().map(|file| file.bytes).sum()));
    out.push_str(&format!("\n{records} records of {of} in {files}, {bytes}{state}\n"));
    if !known.streams.is_empty() {
        add_heading(&mut out, "Streams");
        out.push_str(&columns(&stream_rows(known), &[1, 2, 3, 4, 5, 6], 2));
    }
    if !known.gaps.is_empty() {
        add_heading(&mut out, "Missing");
        let gaps = known.gaps.iter().map(|gap| journal_gap(streams, gap));
        add_list(&mut out, gaps, known.gap_total().gaps, width);
    }
    if known.is_whole {
        add_damages(&mut out, known, streams, width);
    } else {
        out.push('\n');
        let text = "Counted from block headers; `lowlat journal verify` checks every byte.";
        add_painted(&mut out, DIM, text, 0, width);
    }
    out
}

fn stream_rows(known: &JournalVerification) -> Vec<Vec<String>> {
    let head = ["stream", "records", "first", "last", "lost", "bytes", "time"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(known.streams.iter().map(|stream| {
        let sequence = |of: Option<u64>| of.map_or_else(|| "-".to_owned(), |of| of.to_string());
        let length = stream.generated_min.zip(stream.generated_max).map(|(min, max)| max - min);
        vec![
            cut(&clean(&stream.name), NAME_CHARS_MAX),
            count(stream.records),
            sequence(stream.first_sequence),
            sequence(stream.last_sequence),
            count(stream.gaps.records),
            size(stream.bytes),
            length.map_or_else(|| "-".to_owned(), duration),
        ]
    }));
    rows
}

fn add_list(out: &mut String, lines: impl ExactSizeIterator<Item = String>, all: u64, width: usize) {
    let more = all.saturating_sub(lines.len().min(SHOWN_MAX) as u64);
    for line in lines.take(SHOWN_MAX) {
        add_wrapped(out, &clean(&line), 2, width);
    }
    if more > 0 {
        out.push_str(&format!("  {}\n", paint(DIM, &format!("and {} more (--json lists all)", count(more)))));
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn add_damages(out: &mut String, known: &JournalVerification, streams: &[StreamEntry], width: usize) {
    let gaps = known.gap_total();
    let missing = gaps.records - gaps.missed;
    if known.damage_count == 0 && missing == 0 {
        out.push_str(&format!("\n{}\n", paint(GREEN, "Every byte is intact.")));
    } else if known.damage_count == 0 {
        let text = format!("Every byte is intact, but records are missing: {}.", count(missing));
        out.push_str(&format!("\n{}\n", paint(YELLOW, &text)));
    } else {
        add_heading(out, "Damaged");
        for DamagedPlace { file, offset, problem: what, .. } in known.damages.iter().take(SHOWN_MAX) {
            let place = format!("{}, byte {offset}", file_name(file));
            out.push_str(&format!("  {}\n", paint(RED, &clean(&place))));
            add_wrapped(out, &clean(&problem(streams, what)), 4, width);
        }
        let more = known.damage_count.saturating_sub(known.damages.len().min(SHOWN_MAX) as u64);
        if more > 0 {
            out.push_str(&format!("  and {} more (--json lists all)\n", count(more)));
        }
        let text = format!(
            "{} records are still readable. Every command reads them and skips damaged places.",
            count(known.records())
        );
        out.push('\n');
        add_wrapped(out, &text, 0, width);
    }
    for file in &known.files {
        if let Some(problem) = &file.index_problem {
            out.push_str(&paint(YELLOW, "index: "));
            let text = format!("{}: {problem}; the data file is scanned instead", file_name(&file.file));
            add_wrapped(out, &clean(&text), 0, width);
        }
    }
}

/// One line per record, never truncated, because programs read it too: the time of its generation, its stream and
/// sequence, and names and values of its fields. With a `width` it continues on indented lines, broken between
/// fields.
pub fn journal_line(
    time: &str,
    stream: &str,
    sequence: u64,
    fields: &[(&str, String)],
    width: Option<usize>,
) -> String {
    let mut out = String::with_capacity(256);
    // Programs need no styles, which cost more than the rest of a line.
    let add = |out: &mut String, style: Style, text: &str| match width {
        Some(_) => out.push_str(&paint(style, text)),
        None => out.push_str(text),
    };
    let (time, stream, sequence) = (one_line(time), one_line(stream), sequence.to_string());
    out.push_str(&time);
    out.push(' ');
    add(&mut out, BOLD, &stream);
    out.push(' ');
    out.push_str(&sequence);
    let chars = |text: &str| text.chars().count();
    let mut at = chars(&time) + chars(&stream) + chars(&sequence) + 2;
    for (name, value) in fields {
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

/// The difference of the orders of two recordings with these names, and sentences on limits of the comparison.
pub fn journal_diff_text(
    difference: &Difference,
    names: &[String; 2],
    notes: &[String],
    width: usize,
) -> String {
    let width = usable(width);
    let mut out = String::new();
    let Difference { missing_count, extra_count, changed_count, .. } = *difference;
    let counts = [difference.left_count, difference.right_count];
    for ((side, name), items) in ["left: ", "right:"].iter().zip(names).zip(counts) {
        add_wrapped(&mut out, &format!("{side} {}: {} orders", clean(name), count(items)), 0, width);
    }
    out.push_str(&format!("in both: {}\n", count(difference.both_count)));
    let key = |Key { source, number, instrument, change }: &Key| {
        let change = if *change > 0 { format!(", change {change}") } else { String::new() };
        format!("{source} order {number}, instrument {instrument}{change}")
    };
    let lists = [
        ("Only on the left", &difference.missing, missing_count),
        ("Only on the right", &difference.extra, extra_count),
    ];
    for (title, keys, all) in lists.into_iter().filter(|(.., all)| *all > 0) {
        add_heading(&mut out, &format!("{title}: {}", count(all)));
        add_list(&mut out, keys.iter().map(key), all, width);
    }
    if changed_count > 0 {
        add_heading(&mut out, &format!("Changed: {}", count(changed_count)));
        let changes = difference.changed.iter().map(|change| {
            let [left, right] = [&change.left, &change.right].map(|of| of.as_deref().unwrap_or("nothing"));
            format!("{}: {} {left} -> {right}", key(&change.key), change.field)
        });
        let all = changes.len() as u64;
        add_list(&mut out, changes, all, width);
    }
    if difference.is_empty() {
        out.push_str(&paint(GREEN, "Both have the same orders with the same contents."));
        out.push('\n');
    }
    let mut rows =
        vec![["", "count", "min", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).to_vec()];
    let times = [
        ("left", &difference.left_latency),
        ("right", &difference.right_latency),
        ("right less left", &difference.latency_change),
    ];
    for (name, of) in times.into_iter().filter(|(_, of)| of.count > 0) {
        let values = [of.ns_min, of.ns_p50, of.ns_p90, of.ns_p99, of.ns_p999, of.ns_max];
        let mut row = vec![name.to_owned(), count(of.count)];
        row.extend(values.map(|value| value.map_or_else(|| "-".to_owned(), signed)));
        rows.push(row);
    }
    if rows.len() > 1 {
        add_heading(&mut out, "From cause to order");
        out.push_str(&columns(&rows, &[1, 2, 3, 4, 5, 6, 7], 2));
    }
    for note in notes {
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
    use lowlat_journal::{
        diff::SignedDistribution,
        read::{FileReport, GapTotal, StreamReport},
    };
    use std::path::PathBuf;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn known() -> JournalVerification {
        let gaps = GapTotal { gaps: 30, records: 65_434, missed: 0 };
        let file = |name: &str| FileReport {
            file: PathBuf::from("/recordings/monday").join(name),
            bytes: 3 << 19,
            blocks: 1,
            records: 0,
            has_end: true,
            index_problem: None,
        };
        let damage = DamagedPlace {
            file: "/recordings/monday/00000001.journal".into(),
            offset: 4096,
            bytes: 0,
            problem: Problem::Unreadable { error: "no block begins here; ".repeat(6) },
        };
        JournalVerification {
            folder: "/recordings/monday".into(),
            is_whole: true,
            files: vec![file("00000001.journal"), file("00000002.journal")],
            streams: vec![StreamReport {
                name: "md\u{1b}[2J".to_owned(),
                records: 1_234_567,
                first_sequence: Some(0),
                last_sequence: Some(1_300_000),
                generated_min: Some(0),
                generated_max: Some(61_000_000_000),
                gaps,
                bytes: 2 << 20,
                ..StreamReport::default()
            }],
            gaps: (0..25).map(|from| Gap { stream: 0, from, to: from + 1, reason: None }).collect(),
            damages: vec![damage],
            damage_count: 1,
            ..JournalVerification::default()
        }
    }

    fn text(known: &JournalVerification) -> String {
        plain(&journal_text(known, &[], 80))
    }

    #[test]
    fn a_recording_fits_a_narrow_terminal_without_cutting_numbers() {
        let text = text(&known());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("1,234,567") && text.contains("byte 4096") && text.contains("and 10 more"));
        assert!(!text.contains('\u{1b}'));
        let mut lossy = JournalVerification { damages: vec![], damage_count: 0, ..known() };
        let told = self::text(&lossy);
        assert!(told.contains("intact, but records are missing: 65,434."), "{told}");
        lossy.streams[0].gaps.records = 0;
        assert!(self::text(&lossy).contains("Every byte is intact."));
        let quick = self::text(&JournalVerification { is_whole: false, ..lossy });
        assert!(!quick.contains("Every byte") && quick.contains("journal verify"), "{quick}");
        assert!(quick.lines().all(|line| line.chars().count() <= 80), "{quick}");
    }

    #[test]
    fn a_record_wraps_only_in_a_narrow_terminal() {
        let field = |at: usize| ("a_field", "x".repeat(at));
        let fields: Vec<_> = (0..16).map(field).collect();
        let line = |width| plain(&journal_line("2026-11-22T03:31:11.266117461Z", "td", 4797, &fields, width));
        let (whole, wrapped) = (line(None), line(Some(80)));
        assert_eq!(whole.lines().count(), 1);
        assert!(
            wrapped.lines().count() > 1 && wrapped.lines().all(|line| line.chars().count() <= 80),
            "{wrapped}"
        );
        assert!(wrapped.split_whitespace().eq(whole.split_whitespace()), "nothing is left out");
    }

    #[test]
    fn a_difference_lists_what_differs_and_no_percentile_of_too_few_values() {
        let latency_change = SignedDistribution {
            count: 12,
            ns_min: Some(-1_500),
            ns_p50: Some(20),
            ns_max: Some(3_000),
            ..SignedDistribution::default()
        };
        let key = |number| Key { source: "orders.a".to_owned(), number, instrument: 1, change: 0 };
        let difference = Difference {
            left_count: 12,
            right_count: 12,
            both_count: 11,
            missing_count: 1,
            extra_count: 1,
            missing: vec![key(7)],
            extra: vec![key(8)],
            latency_change,
            ..Difference::default()
        };
        let text = plain(&journal_diff_text(&difference, &["a".to_owned(), "b".to_owned()], &[], 80));
        assert!(text.contains("Only on the left: 1\n  orders.a order 7"), "{text}");
        assert!(text.contains("-1.50 us") && !text.contains("same orders"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}
