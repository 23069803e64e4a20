//! sockperf: microseconds with three digits; half round trips, or whole ones with --full-rtt.

use super::{Losses, ToolOutput, ToolRow, number_at, option, whole};

/// Steps of half round trips, in nanoseconds.
const STEP_NS: f64 = 1.0;
const NS_PER_US: f64 = 1_000.0;
/// sockperf's size of messages unless `-m` names another.
const BYTES_DEFAULT: u32 = 14;

/// Parses the summary of a run.
pub fn parse(text: &str, command: &[String]) -> Result<ToolOutput, String> {
    let after = |start: &str| text.split_once(start).map(|(_, rest)| rest);
    // Earlier versions print avg-lat.
    let half = after("avg-latency=").or_else(|| after("avg-lat=")).and_then(number_at);
    let full = after("avg-rtt=").and_then(number_at);
    let (mean, part) = match (half, full) {
        (Some(mean), _) => (mean, 1.0),
        (None, Some(mean)) => (mean, 0.5),
        (None, None) => return Err(format!("has no average{}", cause(text))),
    };
    let ns = |us: f64| us * NS_PER_US * part;
    let percentile = |name: &str| after(name).and_then(|rest| number_at(after_number(rest))).map(ns);
    // "# dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0"
    let losses = match ["# dropped", "# duplicated", "# out-of-order"]
        .map(|kind| after(kind)?.strip_prefix(" messages").and_then(number_at).map(whole))
    {
        [Some(dropped), Some(duplicated), Some(out_of_order)] => {
            Some(Losses { dropped, duplicated, out_of_order })
        }
        _ => None,
    };
    let size = option(command, &["-m", "--msg-size"]).map(str::parse);
    let size_bytes = match size {
        Some(size) => size.ok(),
        None => (!command.is_empty()).then_some(BYTES_DEFAULT),
    };
    let row = ToolRow {
        size_bytes,
        count: observations(text),
        mean_ns: Some(ns(mean)),
        p50_ns: percentile("percentile 50.0"),
        p99_ns: percentile("percentile 99.0"),
        mean_step_ns: STEP_NS * part,
        quantile_step_ns: STEP_NS * part,
        losses,
    };
    Ok(ToolOutput { rows: vec![row], warnings: Vec::new() })
}

/// The text after the digits that end a percentile's name: "00 =   21.990".
fn after_number(rest: &str) -> &str {
    rest.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// The count in "Total 10161 observations".
fn observations(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(" observations;"))?;
    number_at(line.split_once("Total ")?.1).map(whole)
}

/// sockperf's first error, for the message.
fn cause(text: &str) -> String {
    let error = text.lines().find_map(|line| line.split_once("ERROR: "));
    error.map_or_else(String::new, |(_, error)| format!(": {}", error.chars().take(120).collect::<String>()))
}
