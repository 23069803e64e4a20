//! Lines that threads of a program share, as text.

use lowlat_cache::finder::{End, Field, FinderRecord, Finding, LINE_BYTES, Sharing, UnwatchedKind};
use lowlat_text::columns::{self, Column, NONE};
use lowlat_text::text::{BOLD, add_detail, add_result, add_wrapped, cut, paint, usable};
use lowlat_text::units::{clean, count, duration, percent, plural, rate, size};

/// Bytes that processors fetch which take lines in pairs.
const PAIR_BYTES: u64 = 128;
/// Lines shown of each kind.
const SHOWN_MAX: usize = 50;
/// Longest name of a field, code and thread, in characters.
const FIELD_CHARS: usize = 26;
const CODE_CHARS: usize = 24;
const THREAD_CHARS: usize = 15;

/// Formats what was found in a program.
pub fn finder_text(record: &FinderRecord, width: usize) -> String {
    let width = usable(width);
    let findings = record.findings();
    let mut out = String::new();
    add_result(&mut out, &headline(record, &findings), width);
    for sentence in circumstances(record) {
        add_detail(&mut out, &sentence, width);
    }
    for (sharing, title) in [
        (Sharing::False, "False sharing: each thread writes fields of its own in one line"),
        (Sharing::Mixed, "A thread's own field beside one that several threads write"),
        (Sharing::True, "True sharing: threads write the same fields"),
    ] {
        let of: Vec<&Finding> = findings.iter().filter(|finding| finding.sharing == sharing).collect();
        if of.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", paint(BOLD, title)));
        for finding in of.iter().take(SHOWN_MAX) {
            out.push_str(&table(record, finding, width));
            if let Some(advice) = advice(record, finding) {
                add_wrapped(&mut out, &clean(&advice), 4, width);
            }
        }
        if of.len() > SHOWN_MAX {
            add_wrapped(&mut out, &format!("{} more: see --json.", of.len() - SHOWN_MAX), 2, width);
        }
    }
    out
}

/// "3 cache lines are falsely shared".
fn headline(record: &FinderRecord, findings: &[Finding]) -> String {
    let count = |kind| findings.iter().filter(|finding| finding.sharing == kind).count();
    let of = match clean(record.program.rsplit('/').next().unwrap_or_default()) {
        name if name.is_empty() => format!("Process {}", record.pid),
        name => format!("{name} ({})", record.pid),
    };
    match count(Sharing::False) + count(Sharing::Mixed) {
        0 if record.counted_line_count == 0 && record.shared_page_count == 0 => {
            format!("{of}: no page was seen that several threads write")
        }
        0 => format!("{of}: no false sharing was seen"),
        lines => format!("{of}: false sharing in {}", plural(lines, "cache line")),
    }
}

fn circumstances(record: &FinderRecord) -> Vec<String> {
    let ended = match record.end {
        End::Time => "",
        End::Interrupted => " (interrupted)",
        End::Ended => ", until it ended",
    };
    let mut all = vec![format!(
        "Watched for {}{ended}: {} writes caught on {}, words of {} counted. Its threads waited for lowlat for at most {} of \
         the time.",
        duration(record.watched_ns),
        count(record.caught_count),
        plural(usize::try_from(record.page_count).unwrap_or(usize::MAX), "page"),
        plural(usize::try_from(record.counted_line_count).unwrap_or(usize::MAX), "line"),
        percent(record.stalled_share() * 100.0),
    )];
    let unwatched = record.unwatched.iter().map(|of| {
        let what = match of.kind {
            UnwatchedKind::Shared => "memory shared with other processes",
            UnwatchedKind::Data => "initialized data (needs Linux 6.7)",
            UnwatchedKind::Refused => "memory that the kernel refused to watch",
        };
        format!("{} of {what}", size(of.bytes))
    });
    let unwatched: Vec<String> = unwatched.collect();
    if !unwatched.is_empty() {
        all.push(format!("Not watched: {}.", unwatched.join(", ")));
    }
    if record.uncounted_line_count > 0 {
        all.push(format!(
            "Time did not suffice to count the words of {}: watch longer with --duration.",
            plural(usize::try_from(record.uncounted_line_count).unwrap_or(usize::MAX), "written line")
        ));
    }
    all
}

fn table(record: &FinderRecord, finding: &Finding, width: usize) -> String {
    let rows: Vec<(&Field, usize)> =
        finding.fields.iter().flat_map(|field| (0..field.writers.len()).map(move |at| (field, at))).collect();
    let of = |cell: &dyn Fn(&Field, usize) -> String| -> Vec<String> {
        rows.iter().map(|(field, at)| cell(field, *at)).collect()
    };
    let first = |at: usize, text: String| if at == 0 { text } else { String::new() };
    let line = format!("{:x}", finding.line);
    let columns = vec![
        Column::words(&line, 0, of(&|field, at| first(at, format!("+{}", field.address - finding.line)))),
        Column::words("field", 0, of(&|field, at| first(at, cut(&name(record, field), FIELD_CHARS)))),
        Column::words(
            "thread",
            0,
            of(&|field, at| cut(&clean(record.thread_name(field.writers[at].tid)), THREAD_CHARS)),
        ),
        Column::figures("tid", 1, of(&|field, at| field.writers[at].tid.to_string())),
        Column::figures(
            "writes/s",
            1,
            of(&|field, at| match field.writers[at].per_second {
                Some(writes) => rate(writes),
                None => format!("> {}", rate((record.fastest() / 1e3).floor() * 1e3)),
            }),
        ),
        Column::words("code", 2, of(&|field, at| cut(&code(record, field.writers[at].code), CODE_CHARS))),
    ];
    columns::table(columns, width)
}

fn name(record: &FinderRecord, field: &Field) -> String {
    clean(record.place(field.address).map_or(NONE, |place| &place.name))
}

/// "sender.c:41"; without debug information the function.
fn code(record: &FinderRecord, address: u64) -> String {
    let Some(code) = record.code_at(address) else { return NONE.to_owned() };
    clean(if code.line.is_empty() { &code.function } else { &code.line })
}

/// Says where padding goes.
fn advice(record: &FinderRecord, finding: &Finding) -> Option<String> {
    if finding.sharing == Sharing::True {
        return None;
    }
    let line = if record.line_bytes == 0 { LINE_BYTES } else { record.line_bytes };
    // The first field whose writers differ from those of the one before it.
    let mut pairs = finding.fields.windows(2);
    let tids = |field: &Field| field.writers.iter().map(|writer| writer.tid).collect::<Vec<_>>();
    let pair = pairs.find(|pair| tids(&pair[0]) != tids(&pair[1]))?;
    let field = &pair[1];
    let what = match record.place(field.address) {
        Some(place) if place.is_variable => format!("`{}`", place.name),
        _ => format!("the field at +{}", field.address - finding.line),
    };
    let padding = finding.line + line - field.address;
    let pairs = if record.fetches_pairs {
        format!(", or to {PAIR_BYTES}, because this processor fetches lines in pairs")
    } else {
        String::new()
    };
    Some(format!("Align {what} to {line} bytes ({padding} bytes of padding before it){pairs}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::finder::{Code, FieldCount, Place, Thread, Unwatched};

    fn record() -> FinderRecord {
        let count = |address, tid, writes, code| FieldCount {
            address,
            bytes: 8,
            tid,
            writes,
            time_ns: 1_000_000,
            code,
        };
        let place = |address, name: &str| Place { address, name: name.to_owned(), is_variable: true };
        FinderRecord {
            pid: 4711,
            program: "/opt/desk/\u{1b}strategy".to_owned(),
            watched_ns: 5_000_000_000,
            stalled_ns: 250_000_000,
            hit_ns: 10_000,
            line_bytes: 64,
            fetches_pairs: true,
            threads: vec![
                Thread { tid: 4712, name: "sender".to_owned() },
                Thread { tid: 4713, name: "receiver-with-long-name".to_owned() },
            ],
            caught_count: 12_345,
            page_count: 17,
            shared_page_count: 2,
            counted_line_count: 64,
            uncounted_line_count: 3,
            unwatched: vec![Unwatched { kind: UnwatchedKind::Shared, bytes: 1 << 20 }],
            counts: vec![
                count(0x7f00_0000_1040, 4712, 99, 0x10),
                count(0x7f00_0000_1048, 4713, 10, 0x20),
                count(0x7f00_0000_1080, 4712, 16, 0x10),
                count(0x7f00_0000_1080, 4713, 16, 0x20),
            ],
            places: vec![
                place(0x7f00_0000_1040, "statistics_of_all_sessions[17].sent"),
                place(0x7f00_0000_1048, "statistics.received"),
            ],
            code: vec![Code { address: 0x10, function: "send".to_owned(), line: "sender.c:41".to_owned() }],
            ..FinderRecord::default()
        }
    }

    #[test]
    fn findings_fit_80_columns_and_say_where_padding_goes() {
        let text = anstream::adapter::strip_str(&finder_text(&record(), 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in [
            "strategy (4711): false sharing in 1 cache line",
            "sender.c:41",
            "at most 5.00 % of the time",
            "> 100,000",
            "Not watched: 1 MiB of memory shared with other processes.",
            "Align `statistics.received` to 64 bytes (56 bytes of padding before it), or to 128,",
            "True sharing",
        ] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn nothing_found_is_said() {
        let none = finder_text(&FinderRecord { pid: 7, ..FinderRecord::default() }, 80);
        assert!(none.contains("Process 7: no page was seen that several threads write"), "{none}");
    }
}
