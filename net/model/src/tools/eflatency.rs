//! eflatency: whole round trips. The text has microseconds with three digits, the YAML of `-y` whole nanoseconds.

use super::{ToolOutput, ToolRow, number_at, whole};

const NS_PER_US: f64 = 1_000.0;
/// Half of a whole round trip.
const HALF: f64 = 0.5;
/// Heads of the columns since Onload 8.
const COLUMNS: [&str; 7] = ["paylen", "mean", "min", "50%", "95%", "99%", "max"];

/// Parses the text of a ping, or its YAML.
pub fn parse(text: &str) -> Result<ToolOutput, String> {
    let count = value(text, "iterations").map(whole);
    let mut rows: Vec<ToolRow> = text.lines().filter_map(|line| yaml_row(line, count)).collect();
    if rows.is_empty() {
        let table = text.lines().skip_while(|line| !line.split_whitespace().eq(COLUMNS)).skip(1);
        rows = table.map_while(|line| table_row(line, count)).collect();
    }
    if rows.is_empty() {
        rows.extend(mean_alone(text, count));
    }
    if rows.is_empty() {
        Err("has no results; they come from its ping end".to_owned())
    } else {
        Ok(output(rows))
    }
}

fn output(rows: Vec<ToolRow>) -> ToolOutput {
    let warning = "eflatency printed no number of iterations, so its percentiles are left out.";
    let warnings = rows.iter().any(|row| row.count.is_none()).then(|| warning.to_owned());
    ToolOutput { rows, warnings: warnings.into_iter().collect() }
}

/// The number after "# iterations: " or "iterations: ".
fn value(text: &str, key: &str) -> Option<f64> {
    let line = |line: &str| {
        line.trim_start_matches(['#', ' ']).strip_prefix(key)?.strip_prefix(':').and_then(number_at)
    };
    text.lines().find_map(line)
}

/// "  - { payload_len: 0, frame_len: 42, mean: 1689, ..., median: 1680, 95%: 1700, 99%: 1800, ... }".
fn yaml_row(line: &str, count: Option<u64>) -> Option<ToolRow> {
    let fields = line.trim().strip_prefix("- {")?.strip_suffix('}')?;
    let of = |key: &str| {
        let field = |field: &str| field.trim().strip_prefix(key)?.strip_prefix(':').and_then(number_at);
        fields.split(',').find_map(field)
    };
    Some(row(of("payload_len"), count, [of("mean"), of("median"), of("99%")]))
}

/// A row of the table; `None` ends it.
fn table_row(line: &str, count: Option<u64>) -> Option<ToolRow> {
    let cells: Vec<f64> = line.split_whitespace().filter_map(number_at).collect();
    let &[size, mean, _, p50, _, p99, _] = cells.as_slice() else { return None };
    Some(row(Some(size), count, [mean, p50, p99].map(|us| Some(us * NS_PER_US))))
}

/// Earlier versions: "mean round-trip time: 3.379 usec".
fn mean_alone(text: &str, count: Option<u64>) -> Option<ToolRow> {
    let (_, rest) = text.split_once("mean round-trip time")?;
    let mean_ns = number_at(rest).map(|us| us * NS_PER_US);
    Some(row(value(text, "udp payload len"), count, [mean_ns, None, None]))
}

/// A row of mean, median and 99th percentile of whole round trips in nanoseconds.
fn row(size: Option<f64>, count: Option<u64>, whole_ns: [Option<f64>; 3]) -> ToolRow {
    let [mean_ns, p50_ns, p99_ns] = whole_ns.map(|ns| ns.map(|ns| ns * HALF));
    let size_bytes = size.and_then(|size| u32::try_from(whole(size)).ok());
    let row = ToolRow { size_bytes, count, mean_ns, p50_ns, p99_ns, ..ToolRow::default() };
    ToolRow { mean_step_ns: HALF, quantile_step_ns: HALF, ..row }
}
