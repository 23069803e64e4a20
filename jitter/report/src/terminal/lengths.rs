//! Histogram of lengths: a row for each step of length, with bars on a logarithmic scale.

use crate::figures::Jitter;
use hdrhistogram::Histogram;
use lowlat_host::histogram;
use lowlat_text::text::{BLUE, DIM, add_heading, paint};
use lowlat_text::units::count;

/// Highest number of rows; if steps of 1, 2 and 5 need more, rows are whole decades.
const ROWS_MAX: usize = 14;
/// Width of the widest bar; a wider one would be no more readable.
const BAR_MAX: usize = 72;

/// Row: lengths from one edge up to the next.
#[derive(Debug, PartialEq, Eq)]
struct Cell {
    from_ns: u64,
    to_ns: u64,
    count: u64,
}

/// Adds the histogram over all CPUs, if there was an interruption and a histogram is sound.
pub fn add(out: &mut String, jitter: &Jitter<'_>, width: usize) {
    let cells = cells_of(jitter);
    let most = cells.iter().map(|cell| cell.count).max().unwrap_or(0);
    if most == 0 {
        return;
    }
    add_heading(out, "Lengths of interruptions on all CPUs (logarithmic scales)");
    let labels: Vec<String> = cells.iter().map(label).collect();
    let label_width = labels.iter().map(String::len).max().unwrap_or(0);
    let count_width = count(most).len();
    let bar_width = width.saturating_sub(label_width + count_width + 8).clamp(8, BAR_MAX);
    let decades = (most as f64).log10().ceil().max(1.0);
    for (cell, label) in cells.iter().zip(&labels) {
        let bar = "#".repeat(bar_length(cell.count, decades, bar_width));
        let padding = " ".repeat(bar_width - bar.len());
        out.push_str(&format!("  {label:>label_width$} |{}", paint(BLUE, &bar)));
        out.push_str(&format!("{padding}  {:>count_width$}\n", count(cell.count)));
    }
    let axis = axis(decades, bar_width);
    out.push_str(&paint(DIM, format!("  {:>label_width$} {axis}", "").trim_end()));
    out.push('\n');
}

/// Returns the length of a bar: one character for one interruption, the full width for the last decade.
fn bar_length(number: u64, decades: f64, width: usize) -> usize {
    if number == 0 {
        return 0;
    }
    1 + place((number as f64).log10(), decades, width)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place on a line of a terminal")]
fn place(decade: f64, decades: f64, width: usize) -> usize {
    let last = width.saturating_sub(1);
    ((decade / decades * last as f64).round() as usize).min(last)
}

/// Returns the axis "1        10       100      1k"; each number is below the end of its bar.
fn axis(decades: f64, width: usize) -> String {
    let mut line = String::new();
    for power in 0..=20u8 {
        if f64::from(power) > decades {
            break;
        }
        let word = power_word(power);
        // The first character of the line is the axis itself.
        let at = 1 + place(f64::from(power), decades, width);
        if at >= line.len() + usize::from(power > 0) {
            line = format!("{line:at$}{word}");
        }
    }
    line
}

/// Returns a power of ten: 1, 10, 100, 1k, 10k, 100k, 1M.
fn power_word(power: u8) -> String {
    let unit = ["", "k", "M", "G", "T", "P", "E"].get(usize::from(power / 3)).copied().unwrap_or("");
    format!("{}{unit}", 10u32.pow(u32::from(power % 3)))
}

fn label(cell: &Cell) -> String {
    format!("{} - {}", span_word(cell.from_ns), span_word(cell.to_ns))
}

/// Formats an edge without trailing zeros: "200 ns", "5 us".
fn span_word(ns: u64) -> String {
    lowlat_text::units::span(ns).replace(".00", "")
}

/// Returns the rows, from the shortest observed length to the longest.
fn cells_of(jitter: &Jitter<'_>) -> Vec<Cell> {
    let sound: Vec<Histogram<u64>> =
        jitter.record.cpus.iter().filter_map(|cpu| histogram::decode(&cpu.histogram).ok()).collect();
    let longest = jitter.record.cpus.iter().map(|cpu| cpu.interruption_ns_max).max().unwrap_or(0);
    let fine = cells(&sound, longest, &[1, 2, 5]);
    if fine.len() <= ROWS_MAX { fine } else { cells(&sound, longest, &[1]) }
}

fn cells(sound: &[Histogram<u64>], longest: u64, steps: &[u64]) -> Vec<Cell> {
    let mut edges = Vec::new();
    for power in 0..20u32 {
        edges.extend(steps.iter().filter_map(|step| 10u64.checked_pow(power)?.checked_mul(*step)));
    }
    let mut cells: Vec<Cell> = edges
        .iter()
        .zip(edges.iter().skip(1))
        .map(|(from_ns, to_ns)| Cell { from_ns: *from_ns, to_ns: *to_ns, count: 0 })
        .collect();
    for value in sound.iter().flat_map(Histogram::iter_recorded) {
        // A cell of the histogram can end slightly above its longest recorded value.
        let length = value.value_iterated_to().min(longest.max(1));
        if let Some(cell) = cells.iter_mut().find(|cell| length >= cell.from_ns && length < cell.to_ns) {
            cell.count = cell.count.saturating_add(value.count_at_value());
        }
    }
    let first = cells.iter().position(|cell| cell.count > 0);
    let last = cells.iter().rposition(|cell| cell.count > 0);
    match (first, last) {
        (Some(first), Some(last)) => cells.drain(first..=last).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_from_the_shortest_to_the_longest() {
        let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        for length in [150, 180, 400, 4_000] {
            lengths.record(length).unwrap();
        }
        let found: Vec<_> =
            cells(&[lengths], 4_000, &[1, 2, 5]).iter().map(|c| (c.from_ns, c.count)).collect();
        assert_eq!(found, [(100, 2), (200, 1), (500, 0), (1_000, 0), (2_000, 1)]);
        assert!(cells(&[], 0, &[1]).is_empty());
    }

    #[test]
    fn bars_grow_with_the_logarithm() {
        assert_eq!([0, 1, 10, 100, 1_000].map(|n| bar_length(n, 3.0, 31)), [0, 1, 11, 21, 31]);
        assert_eq!(axis(3.0, 31), " 1         10        100       1k");
        assert_eq!(bar_length(u64::MAX, 1.0, 8), 8);
    }
}
