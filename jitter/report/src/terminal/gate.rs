//! Gates as terminal text.

use crate::causes::words::cpu_list;
use crate::terminal::add_dim;
use anstyle::Style;
use lowlat_host::CpuId;
use lowlat_host_report::cpu_parts::bounded;
use lowlat_jitter::gate::{GateOutcome, GateRow, Verdict};
use lowlat_text::columns::Table;
use lowlat_text::text::{DIM, GREEN, RED, YELLOW, add_field, add_painted, paint, usable, wrap};
use lowlat_text::units::{clean, count, plural};

/// Highest number of a gate's rows shown.
const GATE_ROWS_MAX: usize = 40;

/// Formats the outcome of a gate, with the limits that were exceeded.
pub fn gate_text(outcome: &GateOutcome, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let style = gate_style(outcome.verdict);
    let failed: Vec<&GateRow> = outcome.failed().collect();
    let rows = plural(outcome.rows.len(), "limit");
    let gate = clean(&outcome.gate);
    let title = if failed.is_empty() {
        format!("Gate {gate} held: {rows}, none exceeded.")
    } else {
        let (word, missed) = (outcome.verdict.word(), count(failed.len() as u64));
        format!("Gate {gate} {word}: {missed} of {rows} not met.")
    };
    add_painted(&mut out, style, &title, 0, width);
    let broken: Vec<&GateRow> = failed.iter().copied().filter(|row| row.verdict == Verdict::Broken).collect();
    add_broken(&mut out, &broken, width);
    add_not_shown(&mut out, &failed, width);
    out
}

/// Adds a row for each exceeded limit.
fn add_broken(out: &mut String, broken: &[&GateRow], width: usize) {
    if broken.is_empty() {
        return;
    }
    let shown = broken.get(..GATE_ROWS_MAX).unwrap_or(broken);
    let table = Table::of(shown)
        .figures("CPU", 0, |row| row.cpu.map_or_else(|| "all".to_owned(), |cpu| cpu.to_string()))
        .words("", 0, |row| clean(&row.key))
        .figures("measured", 0, |row| clean(&row.value_text))
        .figures("limit", 0, |row| clean(&row.limit_text))
        .words("", 0, |row| row.verdict.word().to_owned());
    let ends = shown.iter().map(|row| (row.verdict.word(), gate_style(row.verdict)));
    add_judged(out, &table.lines(width), ends, |out, at| {
        shown.get(at).into_iter().for_each(|row| add_note(out, &row.note, width));
    });
    if broken.len() > shown.len() {
        add_dim(out, &format!("  and {} more", count((broken.len() - shown.len()) as u64)), width);
    }
}

/// Adds a line for each limit that could not be checked, with its CPUs.
fn add_not_shown(out: &mut String, failed: &[&GateRow], width: usize) {
    let mut kinds: Vec<(&GateRow, Vec<CpuId>)> = Vec::new();
    for row in failed.iter().filter(|row| row.verdict == Verdict::NotShown) {
        let is_kin = |of: &&GateRow| of.key == row.key && of.limit_text == row.limit_text;
        match kinds.iter_mut().find(|(of, _)| is_kin(of)) {
            Some((_, cpus)) => cpus.extend(row.cpu),
            None => kinds.push((row, row.cpu.into_iter().collect())),
        }
    }
    for (row, cpus) in kinds {
        let place = match cpus.as_slice() {
            [] => "all CPUs".to_owned(),
            cpus => format!("CPU {}", cpu_list(&bounded(cpus.iter().copied()), 60)),
        };
        let note = match (row.note.as_str(), cpus.len()) {
            ("", _) => String::new(),
            (note, 0 | 1) => format!(" ({note})"),
            (note, _) => format!(" (the first: {note})"),
        };
        let text = format!("{place}: {} is not shown; limit {}{note}", row.key, row.limit_text);
        add_field(out, "-", &clean(&text), 2, width);
    }
}

fn gate_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Held => GREEN,
        Verdict::Broken => RED,
        Verdict::NotShown => YELLOW,
    }
}

/// Adds the lines of a table with the last word of each in its colour. `after` adds text below a line.
pub fn add_judged(
    out: &mut String,
    table: &[String],
    ends: impl Iterator<Item = (&'static str, Style)>,
    after: impl Fn(&mut String, usize),
) {
    let Some((head, lines)) = table.split_first() else { return };
    out.push_str(&format!("{}\n", paint(DIM, head)));
    for (at, (line, (word, style))) in lines.iter().zip(ends).enumerate() {
        let (start, end) = line.strip_suffix(word).map_or((line.as_str(), ""), |start| (start, word));
        out.push_str(&format!("{start}{}\n", paint(style, end)));
        after(out, at);
    }
}

/// Adds dimmed text below a row.
pub fn add_note(out: &mut String, text: &str, width: usize) {
    let lines = if text.is_empty() { Vec::new() } else { wrap(&clean(text), width.saturating_sub(6)) };
    for line in lines {
        out.push_str(&format!("      {}\n", paint(DIM, &line)));
    }
}
