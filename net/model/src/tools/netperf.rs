//! netperf's TCP_RR and UDP_RR: whole round trips. The omni selectors give microseconds, percentiles in whole ones; the
//! classic table gives a rate.

use super::{ToolOutput, ToolRow, option, whole};
use std::collections::BTreeMap;

const NS_PER_US: f64 = 1_000.0;
const NS_PER_S: f64 = 1e9;
/// Half of a whole round trip.
const HALF: f64 = 0.5;
/// Digits of means, in microseconds.
const MEAN_STEP_US: f64 = 0.01;
/// Seconds of a run unless `-l` names others.
const SECONDS_DEFAULT: f64 = 10.0;

/// Selectors that are read, with the titles of CSV and of columns.
const SELECTORS: [(&str, &str); 9] = [
    ("MEAN_LATENCY", "mean latency microseconds"),
    ("P50_LATENCY", "50th percentile latency microseconds"),
    ("P99_LATENCY", "99th percentile latency microseconds"),
    ("RT_LATENCY", "round trip latency usec/tran"),
    ("TRANSACTION_RATE", "transaction rate tran/s"),
    ("THROUGHPUT", "throughput"),
    ("ELAPSED_TIME", "elapsed time (sec)"),
    ("REQUEST_SIZE", "request size bytes"),
    ("BURST_SIZE", "initial burst requests"),
];

type Values = BTreeMap<&'static str, f64>;

/// True if a text is netperf's, with or without its banner.
pub fn is_output(text: &str) -> bool {
    text.lines().any(|line| is_banner(line) && line.contains(" AF_INET")) || selected(&lines(text)).is_some()
}

/// The lines that can have results.
fn lines(text: &str) -> Vec<&str> {
    let is_other =
        |line: &str| is_banner(line) || line.starts_with("Interim result") || line.trim().is_empty();
    text.lines().filter(|line| !is_other(line)).collect()
}

/// The values of selectors, in any of their three forms.
fn selected(lines: &[&str]) -> Option<Values> {
    let forms = [key_values, columns, comma_separated];
    forms.into_iter().map(|form| form(lines)).find(|values| !values.is_empty())
}

/// Parses the selectors in any of their three forms, or the classic table.
pub fn parse(text: &str, command: &[String]) -> Result<ToolOutput, String> {
    let lines = lines(text);
    let mut values = classic(&lines).or_else(|| selected(&lines)).unwrap_or_default();
    if ["bits/s", "Bytes/s"].iter().any(|unit| text.contains(unit)) {
        values.remove("THROUGHPUT");
    }
    if values.is_empty() {
        let last = lines.last().copied().unwrap_or_default().chars().take(120).collect::<String>();
        return Err(format!("has neither selectors nor a table: \"{last}\""));
    }
    let burst = values.get("BURST_SIZE").copied().or_else(|| burst_of(text)).unwrap_or(0.0);
    let mut warnings = Vec::new();
    if burst > 0.0 {
        warnings.push(format!(
            "netperf kept {burst} more messages under way, so its times include waiting behind them."
        ));
    }
    let row = row(&values, command, burst > 0.0);
    if row.count.is_none() {
        warnings.push(
            "netperf does not say how many round trips it measured, so its percentiles are left out: add \
                       -o ELAPSED_TIME,TRANSACTION_RATE."
                .to_owned(),
        );
    }
    Ok(ToolOutput { rows: vec![row], warnings })
}

fn row(values: &Values, command: &[String], is_burst: bool) -> ToolRow {
    let of = |name: &str| values.get(name).copied();
    let rate = of("TRANSACTION_RATE").or_else(|| of("THROUGHPUT")).filter(|rate| *rate > 0.0);
    let from_rate = rate.filter(|_| !is_burst).map(|rate| NS_PER_S / rate);
    let round_trip = of("MEAN_LATENCY").or_else(|| of("RT_LATENCY")).map(|us| us * NS_PER_US).or(from_rate);
    let seconds = of("ELAPSED_TIME").or_else(|| seconds_of(command));
    let per_s = rate.or_else(|| round_trip.filter(|ns| *ns > 0.0).map(|ns| NS_PER_S / ns));
    let by_time = seconds.zip(per_s).map(|(seconds, per_s)| whole(seconds * per_s));
    let half_us = |us: f64| us * NS_PER_US * HALF;
    let step_us = of("P99_LATENCY").or_else(|| of("P50_LATENCY")).map_or(0.0, step_us);
    ToolRow {
        size_bytes: of("REQUEST_SIZE")
            .or_else(|| request_of(command))
            .and_then(|size| u32::try_from(whole(size)).ok()),
        count: count_of(command).or(by_time),
        mean_ns: round_trip.map(|ns| ns * HALF),
        p50_ns: of("P50_LATENCY").map(half_us),
        p99_ns: of("P99_LATENCY").map(half_us),
        mean_step_ns: half_us(MEAN_STEP_US),
        quantile_step_ns: half_us(step_us),
        ..ToolRow::default()
    }
}

/// Width of the buckets of netperf's histogram: a hundred of one unit, then a hundred of ten.
fn step_us(us: f64) -> f64 {
    let mut step = 1.0;
    while us >= step * 100.0 && step < 1e9 {
        step *= 10.0;
    }
    step
}

fn is_banner(line: &str) -> bool {
    line.contains(" TEST from ") || line.contains(" TEST to ")
}

/// Messages beyond the first: "first burst 2".
fn burst_of(text: &str) -> Option<f64> {
    text.split_once("first burst ").and_then(|(_, rest)| super::number_at(rest))
}

/// Seconds of `-l`; a negative one counts transactions.
fn seconds_of(command: &[String]) -> Option<f64> {
    let seconds = option(command, &["-l"]).map_or(Some(SECONDS_DEFAULT), |seconds| seconds.parse().ok());
    seconds.filter(|seconds| *seconds > 0.0 && !command.is_empty())
}

fn count_of(command: &[String]) -> Option<u64> {
    option(command, &["-l"])?.strip_prefix('-')?.parse().ok()
}

/// Size of requests: `-r 32,32`; one byte otherwise.
fn request_of(command: &[String]) -> Option<f64> {
    let size = option(command, &["-r"]).map_or(Some(1.0), |sizes| sizes.split(',').next()?.parse().ok());
    size.filter(|_| !command.is_empty())
}

/// Values of `-k`, such as "P50_LATENCY=26".
fn key_values(lines: &[&str]) -> Values {
    lines.iter().filter_map(|line| line.split_once('=')).filter_map(value_of).collect()
}

/// `-o`: a line of titles, a line of values. Commas within quotes separate nothing.
fn comma_separated(lines: &[&str]) -> Values {
    let of = |(heads, values): (&&str, &&str)| -> Values {
        let mut is_quoted = false;
        let separates = |c: char| {
            is_quoted ^= c == '"';
            c == ',' && !is_quoted
        };
        heads.split(',').zip(values.split(separates)).filter_map(value_of).collect()
    };
    lines.iter().zip(lines.iter().skip(1)).map(of).find(|values| !values.is_empty()).unwrap_or_default()
}

/// `-O`: blocks of titles of up to four lines with values below them, in columns that blanks separate.
fn columns(lines: &[&str]) -> Values {
    let has_value = |line: &&str| line.split_whitespace().any(|word| word.parse::<f64>().is_ok());
    let mut found = Values::new();
    for block in lines.split_inclusive(has_value) {
        let Some((values, heads)) = block.split_last() else { continue };
        let is_blank =
            |at: usize| block.iter().all(|line| line.as_bytes().get(at).is_none_or(u8::is_ascii_whitespace));
        let width = block.iter().map(|line| line.len()).max().unwrap_or(0);
        let starts: Vec<usize> =
            (0..width).filter(|at| !is_blank(*at) && (*at == 0 || is_blank(at - 1))).collect();
        let ends = starts.iter().skip(1).copied().chain([width]);
        for (from, to) in starts.iter().copied().zip(ends) {
            let part = |line: &&str| line.get(from..to.min(line.len())).unwrap_or_default().trim().to_owned();
            let title = heads.iter().map(part).collect::<Vec<_>>().join(" ");
            found.extend(value_of((&title, &part(values))));
        }
    }
    found
}

/// A selector that is read, by its name or its title, with its value.
fn value_of((head, value): (&str, &str)) -> Option<(&'static str, f64)> {
    let head = head.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_meant = |(name, title): &(&str, &str)| *name == head || title.eq_ignore_ascii_case(&head);
    let (name, _) = SELECTORS.into_iter().find(is_meant)?;
    Some((name, finite(value)?))
}

/// The classic table of a request/response test: socket sizes, request and response size, elapsed time, rate.
fn classic(lines: &[&str]) -> Option<Values> {
    let is_classic = |line: &&&str| line.split_whitespace().all(|word| finite(word).is_some());
    let has_head = lines.iter().any(|line| line.contains("Request") && line.contains("Resp."));
    let line = lines.iter().find(is_classic).filter(|_| has_head || lines.len() <= 2)?;
    let numbers: Vec<f64> = line.split_whitespace().filter_map(finite).collect();
    let [_, _, request, _, elapsed, rate, ..] = numbers.as_slice() else { return None };
    Some(Values::from([("REQUEST_SIZE", *request), ("ELAPSED_TIME", *elapsed), ("TRANSACTION_RATE", *rate)]))
}

fn finite(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}
