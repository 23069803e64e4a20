//! Lines that threads of a program share.

use lowlat_cache::FalseSharingMeasurement;
use lowlat_cache::finder::{
    AccessRate, End, Field, FinderRecord, LINE_BYTES, SharedLine, Sharing, Suspect, UnwatchedKind, User,
    plain,
};
use lowlat_text::article::Article;
use lowlat_text::columns::{NONE, Table};
use lowlat_text::text::cut;
use lowlat_text::units::{clean, count, duration, percent, plural, rate, size};

/// Lines shown of each kind.
const SHOWN_MAX: usize = 50;
/// Longest name of a field, code and thread, in characters.
const FIELD_CHARS: usize = 26;
const CODE_CHARS: usize = 24;
const THREAD_CHARS: usize = 15;
/// Threads named of a suspected place.
const TIDS_MAX: usize = 4;

/// What was found in a program.
pub fn finder_article(record: &FinderRecord) -> Article {
    let (findings, suspects) = (record.findings(), record.suspects());
    let headline = headline(record, &findings, &suspects);
    let mut article = Article::new(FalseSharingMeasurement::KIND, "False sharing in a program", headline);
    for sentence in circumstances(record) {
        article = article.detail(sentence);
    }
    for (sharing, title) in [
        (Sharing::False, "False sharing: threads use different fields of one line, and write there"),
        (Sharing::Mixed, "A thread's own field beside one that several threads use"),
        (Sharing::True, "True sharing: threads use the same fields"),
    ] {
        let of: Vec<&SharedLine> = findings.iter().filter(|finding| finding.sharing == sharing).collect();
        if !of.is_empty() {
            article = article.heading(title);
        }
        for finding in of.iter().take(SHOWN_MAX) {
            let users = users(finding);
            article = article.table("Fields of a line and their threads", table(record, finding, &users));
            if let Some(advice) = advice(record, finding) {
                article = article.text(advice);
            }
        }
        if of.len() > SHOWN_MAX {
            article = article.text(format!("{} more: see --json.", of.len() - SHOWN_MAX));
        }
    }
    let suspicions = suspects.iter().take(SHOWN_MAX).map(|suspect| suspicion(record, suspect)).collect();
    article.sentences("Suspected: a line that is hot for moments", suspicions)
}

/// "false sharing in 3 cache lines". "No false sharing" only if everything was checked.
fn headline(record: &FinderRecord, findings: &[SharedLine], suspects: &[Suspect]) -> String {
    let count = |kind| findings.iter().filter(|finding| finding.sharing == kind).count();
    let of = match clean(record.program.rsplit('/').next().unwrap_or_default()) {
        name if name.is_empty() => format!("Process {}", record.pid),
        name => format!("{name} ({})", record.pid),
    };
    let lines = count(Sharing::False) + count(Sharing::Mixed);
    match (lines, suspects.len()) {
        (0, 0) if record.is_partial() => {
            format!("{of}: nothing was found in what was looked at, and part was not looked at")
        }
        (0, 0) => format!("{of}: no false sharing was seen"),
        (0, places) => format!("{of}: false sharing is suspected in {}", plural(places, "place")),
        _ => format!("{of}: false sharing in {}", plural(lines, "cache line")),
    }
}

fn circumstances(record: &FinderRecord) -> Vec<String> {
    let ended = match record.end {
        End::Time => "",
        End::Interrupted => " (interrupted)",
        End::Ended => ", until it ended",
    };
    let processes = match record.processes.len() {
        0 | 1 => String::new(),
        several => format!(" in {several} processes"),
    };
    let mut all = vec![format!(
        "Watched for {}{ended}: {} writes caught{processes} on {}, words of {} of {} bytes counted. Its threads waited for \
         lowlat for at most {} of the time.",
        duration(record.watched_ns),
        count(record.caught_count),
        plural(record.page_count, "page"),
        plural(record.counted_line_count, "line"),
        record.line_bytes,
        percent(record.stalled_share() * 100.0),
    )];
    let mut missing: Vec<String> = Vec::new();
    for of in &record.unwatched {
        let what = match of.kind {
            UnwatchedKind::Shared => "memory that other processes use too, for their accesses",
            UnwatchedKind::Data => "memory of files (needs Linux 6.7)",
            UnwatchedKind::Huge => "huge pages, which stay whole",
            UnwatchedKind::Hugetlb => "hugetlbfs pages",
            UnwatchedKind::Refused => "memory that the kernel refused to watch",
        };
        missing.push(format!("{} of {what}", size(of.bytes)));
    }
    if record.missed_process_count > 0 {
        missing.push(plural(record.missed_process_count, "child process"));
    }
    if !missing.is_empty() {
        all.push(format!("Not looked at: {}.", missing.join(", ")));
    }
    if record.is_too_short() {
        all.push(
            "It ended before any line was counted: watch a program that runs for some seconds.".to_owned(),
        );
    }
    if record.uncounted_line_count > 0 {
        all.push(format!(
            "Time did not suffice to count who uses {}: watch longer with --duration.",
            plural(record.uncounted_line_count, "written line")
        ));
    }
    all
}

fn users(finding: &SharedLine) -> Vec<(&Field, &User)> {
    finding.fields.iter().flat_map(|field| field.users.iter().map(move |user| (field, user))).collect()
}

fn table<'a>(
    record: &FinderRecord,
    finding: &SharedLine,
    users: &'a [(&Field, &User)],
) -> Table<'a, (&'a Field, &'a User)> {
    let first = |field: &Field, user: &User, text: String| {
        if field.users.first() == Some(user) { text } else { String::new() }
    };
    let kind = |user: &User| if user.is_writer { "writes" } else { "reads" };
    Table::of(users)
        .words(&format!("{:x}", plain(finding.line)), 0, |(field, user)| {
            first(field, user, format!("+{}", field.address - finding.line))
        })
        .words("field", 0, |(field, user)| first(field, user, cut(&name(record, field), FIELD_CHARS)))
        .words("thread", 0, |(_, user)| cut(&clean(record.thread_name(user.tid)), THREAD_CHARS))
        .figures("tid", 1, |(_, user)| user.tid.to_string())
        .figures("per second", 0, |(_, user)| match user.pace {
            Some(AccessRate { per_second, is_more }) => {
                format!("{}{} {}", if is_more { "> " } else { "" }, rate(per_second), kind(user))
            }
            None => kind(user).to_owned(),
        })
        .words("code", 2, |(_, user)| cut(&code(record, user.code), CODE_CHARS))
}

fn name(record: &FinderRecord, field: &Field) -> String {
    clean(record.place(field.address).map_or(NONE, |place| &place.name))
}

/// "sender.c:41"; without debug information the function.
fn code(record: &FinderRecord, address: u64) -> String {
    let Some(code) = record.code_at(address) else { return NONE.to_owned() };
    clean(if code.line.is_empty() { &code.function } else { &code.line })
}

/// Says where padding goes: before each field whose threads differ from those of the field before it.
fn advice(record: &FinderRecord, finding: &SharedLine) -> Option<String> {
    if finding.sharing == Sharing::True {
        return None;
    }
    let line = if record.line_bytes == 0 { LINE_BYTES } else { record.line_bytes };
    let what = |field: &Field| match record.place(field.address) {
        Some(place) if place.is_variable => format!("`{}`", place.name),
        _ => format!("the field at +{}", field.address - finding.line),
    };
    // Bytes since the last start of a line.
    let (mut names, mut padding, mut start) = (Vec::new(), Vec::new(), finding.line);
    for pair in finding.fields.windows(2) {
        if pair[0].tids() != pair[1].tids() || pair[0].writers() != pair[1].writers() {
            names.push(what(&pair[1]));
            padding.push((line - (pair[1].address - start)).to_string());
            start = pair[1].address;
        }
    }
    let last = names.pop()?;
    let (each, names) =
        if names.is_empty() { ("", last) } else { (" each", format!("{} and {last}", names.join(", "))) };
    Some(format!("Align {names} to {line} bytes{each} ({} bytes of padding before it).", padding.join(", ")))
}

/// "ring in memory at 7f…: threads a and b wrote one line at the same time, 17 times in 9 lines".
fn suspicion(record: &FinderRecord, suspect: &Suspect) -> String {
    let place =
        record.place(suspect.start).map_or(String::new(), |place| format!(" ({})", clean(&place.name)));
    let names = suspect.tids.iter().take(TIDS_MAX).map(|tid| match clean(record.thread_name(*tid)) {
        name if name.is_empty() => tid.to_string(),
        name => format!("{name} ({tid})"),
    });
    let why = match suspect.lines {
        1 => "Counting did not see them there at the same time.",
        _ => "The line moves on before its words can be counted.",
    };
    format!(
        "{:x} to {:x}{place}: {} wrote different words of one line at the same time, seen {} times in {}. {why}",
        plain(suspect.start),
        plain(suspect.end),
        names.collect::<Vec<_>>().join(", "),
        count(suspect.count),
        plural(suspect.lines, "line")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::finder::{CloseWrites, Code, FieldCount, Meeting, Place, Thread, Unwatched};

    fn count(address: u64, tid: u32, writes: u64, code: u64) -> FieldCount {
        FieldCount { address, bytes: 8, tid, accesses: 16, writes, code, ..FieldCount::default() }
    }

    fn place(address: u64, name: &str) -> Place {
        Place { address, name: name.to_owned(), is_variable: true }
    }

    fn record() -> FinderRecord {
        let thread = |tid, name: &str| Thread { tid, name: name.to_owned(), cpus: vec![] };
        let with_pace = |count: FieldCount, window_count, is_cut| FieldCount {
            window_count,
            is_cut,
            window_ns: 1_000_000,
            ..count
        };
        let meeting = |line| Meeting { line, tids: [4712, 4713], together: 40, windows: 48 };
        FinderRecord {
            pid: 4711,
            program: "/opt/desk/\u{1b}strategy".to_owned(),
            watched_ns: 5_000_000_000,
            stalled_ns: 250_000_000,
            hit_ns: 10_000,
            line_bytes: 64,
            processes: vec![4711, 4720],
            threads: vec![thread(4712, "sender"), thread(4713, "receiver-with-long-name")],
            caught_count: 12_345,
            page_count: 17,
            counted_line_count: 64,
            uncounted_line_count: 3,
            unwatched: vec![Unwatched { kind: UnwatchedKind::Shared, bytes: 1 << 20 }],
            counts: vec![
                with_pace(count(0x7f00_0000_1040, 4712, 99, 0x10), 16, true),
                with_pace(count(0x7f00_0000_1048, 4713, 0, 0x20), 1, false),
                count(0x7f00_0000_1080, 4712, 16, 0x10),
                count(0x7f00_0000_1080, 4713, 16, 0x20),
            ],
            meetings: vec![meeting(0x7f00_0000_1040), meeting(0x7f00_0000_1080)],
            places: vec![
                place(0x7f00_0000_1040, "statistics_of_all_sessions[17].sent"),
                place(0x7f00_0000_1048, "statistics.received"),
            ],
            code: vec![Code { address: 0x10, function: "send".to_owned(), line: "sender.c:41".to_owned() }],
            ..FinderRecord::default()
        }
    }

    fn flat(record: &FinderRecord) -> String {
        let text = anstream::adapter::strip_str(&finder_article(record).to_text(80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn findings_fit_80_columns_and_say_where_padding_goes() {
        let text = flat(&record());
        for part in [
            "strategy (4711): false sharing in 1 cache line",
            "sender.c:41",
            "at most 5.00 % of the time",
            "in 2 processes",
            "> 16,000 writes",
            "1,000 reads",
            "Not looked at: 1 MiB of memory that other processes use too",
            "Align `statistics.received` to 64 bytes (56 bytes of padding before it).",
            "True sharing",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("128"), "{text}");
    }

    #[test]
    fn padding_separates_all_threads() {
        let mut record = record();
        record.places.clear();
        record.counts =
            (0..4).map(|at| count(0x1008 + 8 * at, 4712 + u32::try_from(at / 2).unwrap(), 16, 0)).collect();
        record.counts.push(count(0x1028, 4714, 16, 0));
        record.counts.push(count(0x1030, 4712, 16, 0));
        for tids in [[4712, 4713], [4712, 4714]] {
            record.meetings.push(Meeting { line: 0x1000, tids, together: 40, windows: 48 });
        }
        let expected = "Align the field at +24, the field at +40 and the field at +48 to 64 bytes each (40, 48, 56 bytes of \
                        padding before it).";
        assert!(flat(&record).contains(expected), "{}", flat(&record));
        record.line_bytes = 128;
        record.meetings.iter_mut().for_each(|of| of.line &= !127);
        assert!(flat(&record).contains("to 128 bytes each (104, 112, 120 bytes"), "{}", flat(&record));
    }

    #[test]
    fn nothing_is_only_said_if_everything_was_looked_at() {
        let whole = FinderRecord { pid: 7, line_bytes: 64, ..FinderRecord::default() };
        assert!(flat(&whole).contains("Process 7: no false sharing was seen"));
        let counted = FinderRecord { counted_line_count: 3, ..whole.clone() };
        assert!(flat(&counted).contains("Process 7: no false sharing was seen"));
        let huge = Unwatched { kind: UnwatchedKind::Huge, bytes: 2 << 20 };
        for (partial, said) in [
            (FinderRecord { unwatched: vec![huge], ..counted.clone() }, "2 MiB of huge pages"),
            (FinderRecord { uncounted_line_count: 1, ..counted.clone() }, "who uses 1 written line"),
            (FinderRecord { missed_process_count: 1, ..whole.clone() }, "Not looked at: 1 child process"),
            (FinderRecord { end: End::Ended, ..whole }, "ended before any line"),
        ] {
            let text = flat(&partial);
            assert!(!text.to_lowercase().contains("no false sharing") && !text.contains("no page"), "{text}");
            assert!(text.contains("part was not looked at") && text.contains(said), "{text}");
        }
        let suspect = CloseWrites { line: 0x1000, mapping: 0x1000, tids: [1, 2], count: 5 };
        let text = flat(&FinderRecord { close_writes: vec![suspect], ..counted });
        assert!(
            text.contains("false sharing is suspected in 1 place") && text.contains("1000 to 1040: 1, 2"),
            "{text}"
        );
    }
}
