//! Parts of round trips as text: where the time went, and what made the slowest ones slow.

use super::pingpong::{bytes, quoted};
use lowlat_net::pingpong::{
    PingpongRecord,
    parts::{Part, PartFigures, SizeParts, SlowCause, SlowMessage},
};
use lowlat_text::columns::Table;
use lowlat_text::text::{add_detail, add_heading, add_wrapped};
use lowlat_text::units::{clean, count, duration, percent, plural};
use std::{cmp::Reverse, collections::BTreeMap};

/// Rows of the table of causes.
const CAUSES_MAX: usize = 8;
/// Longest name of a cause in the table, in characters.
const CAUSE_CHARS_MAX: usize = 34;
/// Width of the longest bar, in characters.
const BAR_CHARS: f64 = 20.0;

/// Adds the parts of the size that people quote, if the run has them.
pub(super) fn add_parts(out: &mut String, record: &PingpongRecord, width: usize) {
    let Some((size, parts)) = quoted(record).and_then(|size| Some((size, size.parts.as_ref()?))) else {
        return;
    };
    add_heading(out, &format!("Where a round trip of {} spends its time", bytes(size.size_bytes)));
    out.push_str(&table(record, parts, width));
    for sentence in sentences(record, parts) {
        add_detail(out, &sentence, width);
    }
    if !parts.slowest.is_empty() {
        let messages = plural(parts.slowest.len(), "round trip");
        add_heading(out, &format!("The slowest {messages} of {}", bytes(size.size_bytes)));
        out.push_str(&table_of_causes(record, &parts.slowest, width));
    }
    let others = record.sizes.iter().filter(|of| of.parts.is_some()).count() - 1;
    if others > 0 {
        let text = format!(
            "The HTML report and the JSON document have the parts of {} more.",
            plural(others, "size")
        );
        add_wrapped(out, &text, 2, width);
    }
}

/// Name of a part. An end that was not traced has its wake-up within the part before.
pub(super) fn name(record: &PingpongRecord, part: Part) -> String {
    let facts = record.parts.as_ref();
    let is_traced = facts.map_or([false; 2], |facts| facts.is_traced);
    match part {
        Part::Wire if facts.is_some_and(|facts| facts.is_by_nics) => "wire, there and back".to_owned(),
        Part::ClientSocket if !is_traced[0] => "client: driver to program".to_owned(),
        Part::ServerSocket if !is_traced[1] => "server: driver to program".to_owned(),
        part => part.to_string(),
    }
}

/// The parts that take time in this run: spinning threads have no wake-ups.
pub(super) fn shown<'a>(record: &PingpongRecord, parts: &'a SizeParts) -> Vec<&'a PartFigures> {
    let is_shown = |of: &&PartFigures| {
        let is_wake = matches!(of.part, Part::ClientWake | Part::ServerWake);
        !(is_wake && record.scenario.waiting.spins() && of.total_ns == 0)
    };
    parts.parts.iter().filter(is_shown).collect()
}

fn table(record: &PingpongRecord, parts: &SizeParts, width: usize) -> String {
    let shown = shown(record, parts);
    let most = shown.iter().map(|of| parts.share_of(of)).fold(f64::MIN_POSITIVE, f64::max);
    Table::of(&shown)
        .words("part", 0, |of| name(record, of.part))
        .figures("median", 0, |of| duration(of.median_ns))
        .figures("p99", 1, |of| of.p99_ns.map(duration))
        .figures("share", 0, |of| percent(parts.share_of(of) * 100.0))
        .words("", 2, |of| "#".repeat(chars(parts.share_of(of) / most * BAR_CHARS)))
        .text(width)
}

/// Returns the facts needed to read the parts, one sentence each.
pub(super) fn sentences(record: &PingpongRecord, parts: &SizeParts) -> Vec<String> {
    let mut all = vec![format!(
        "The parts of {} of {} add up to the measured time within 2 %.",
        percent(floored(parts.share_adding_up() * 100.0)),
        plural(parts.messages, "round trip")
    )];
    for (number, what) in [
        (parts.missing, "lack a time stamp"),
        (parts.disordered, "have time stamps that are out of order"),
        (parts.untraced, "have no known wake-up because trace events were lost"),
    ] {
        if number > 0 {
            all.push(format!("{} of them {what}, and are not in the table.", count(number)));
        }
    }
    if let Some(ratio) = parts.stamp_cost_ratio() {
        all.push(format!(
            "With time stamps the median round trip is {}, {ratio:.2} times as long as in the interleaved rounds \
             without ({}), to which all other figures belong.",
            duration(parts.stamped_median_ns),
            duration(parts.plain_median_ns)
        ));
    }
    if record.scenario.waiting.spins() {
        all.push("Spinning threads have no wake-up.".to_owned());
    }
    if record.scenario.rate_per_s.is_some() {
        all.push("Parts start at the time of sending, not at the time when the message was due.".to_owned());
    }
    if let Some(facts) = &record.parts {
        if facts.is_traced != [true; 2] && !record.scenario.waiting.spins() {
            all.push(
                "\"Driver to program\" includes the wake-up of a thread, which only a trace tells apart."
                    .to_owned(),
            );
        }
        all.extend(facts.notes.iter().cloned());
    }
    all
}

/// One decimal, rounded down: 99.96 % of the messages are not all.
fn floored(percent: f64) -> f64 {
    (percent * 10.0).floor() / 10.0
}

/// Round trips with one long part and one cause.
pub(super) struct CauseRow {
    /// The part that was long.
    pub part: String,
    /// Cause, with its CPU if that is not the end's own.
    pub cause: String,
    pub count: u64,
    /// Time of the slowest of them.
    pub longest_ns: u64,
}

/// The causes of the slowest round trips, the most frequent first.
pub(super) fn cause_rows(record: &PingpongRecord, slowest: &[SlowMessage]) -> Vec<CauseRow> {
    let mut found: BTreeMap<(Part, String), (u64, u64)> = BTreeMap::new();
    for slow in slowest {
        let own_cpu = if slow.part.is_server() { record.server.cpu } else { record.client.cpu };
        let elsewhere =
            slow.cpu.filter(|cpu| Some(*cpu) != own_cpu && !matches!(slow.part, Part::Wire | Part::Nics));
        let place = elsewhere.map(|cpu| format!(", CPU {cpu}")).unwrap_or_default();
        let cause = match &slow.cause {
            SlowCause::NotFound => "not found".to_owned(),
            cause => format!("{cause}{place}"),
        };
        let (number, longest_ns) = found.entry((slow.part, clean(&cause))).or_default();
        *number += 1;
        *longest_ns = slow.round_trip_ns.max(*longest_ns);
    }
    let mut rows: Vec<CauseRow> = found
        .into_iter()
        .map(|((part, cause), (count, longest_ns))| CauseRow {
            part: name(record, part),
            cause,
            count,
            longest_ns,
        })
        .collect();
    rows.sort_by_key(|row| (Reverse(row.count), Reverse(row.longest_ns)));
    rows
}

fn table_of_causes(record: &PingpongRecord, slowest: &[SlowMessage], width: usize) -> String {
    let mut rows = cause_rows(record, slowest);
    if rows.len() > CAUSES_MAX {
        let rest = rows.split_off(CAUSES_MAX - 1);
        rows.push(CauseRow {
            part: "other".to_owned(),
            cause: plural(rest.len(), "more cause"),
            count: rest.iter().map(|row| row.count).sum(),
            longest_ns: rest.iter().map(|row| row.longest_ns).max().unwrap_or_default(),
        });
    }
    Table::of(&rows)
        .words("long part", 0, |row| row.part.clone())
        .words("cause", 0, |row| lowlat_text::text::cut(&row.cause, CAUSE_CHARS_MAX))
        .figures("count", 0, |row| count(row.count))
        .figures("slowest", 1, |row| duration(row.longest_ns))
        .text(width)
}

/// Rounds to a number of characters.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
fn chars(value: f64) -> usize {
    value.round() as usize
}

#[cfg(test)]
pub(super) mod tests;
