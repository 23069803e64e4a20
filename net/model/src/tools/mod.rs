//! Output of programs that measure round trips, as half round trips in nanoseconds.

mod eflatency;
mod netperf;
mod sfnt_pingpong;
mod sockperf;

use crate::{sfnt, whole};
use lowlat_host::{CpuId, statistics::carries_quantile};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Longest output accepted, in bytes.
pub const BYTES_MAX: usize = sfnt::BYTES_MAX;
/// Longest time accepted, in nanoseconds of half a round trip: an hour.
const NS_MAX: f64 = 3.6e12;

/// A program that measures round trips.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// `lowlat net pingpong client`.
    #[default]
    Lowlat,
    /// sfnt-pingpong of cns-sfnettest.
    Sfnt,
    /// sockperf in its modes ping-pong and under-load.
    Sockperf,
    /// netperf's `TCP_RR` and `UDP_RR`.
    Netperf,
    /// eflatency of Onload, over `ef_vi`.
    Eflatency,
}

/// Parsed output of a program.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolOutput {
    /// One row for each size.
    pub rows: Vec<ToolRow>,
    /// Limits of the output, one sentence each.
    pub warnings: Vec<String>,
}

/// Half round trips of one size.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ToolRow {
    /// Size of the messages, if it is known.
    pub size_bytes: Option<u32>,
    /// Round trips measured, if the program says so.
    pub count: Option<u64>,
    pub mean_ns: Option<f64>,
    pub p50_ns: Option<f64>,
    pub p99_ns: Option<f64>,
    /// Resolution of the mean, in nanoseconds.
    pub mean_step_ns: f64,
    /// Resolution of the percentiles: smaller differences are not seen.
    pub quantile_step_ns: f64,
    /// Counts of lost, duplicated and reordered messages, if the program reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<Losses>,
}

/// Messages that are in no figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Losses {
    /// Messages without an answer.
    pub dropped: u64,
    /// Messages that were answered again.
    pub duplicated: u64,
    /// Answers that arrived after a later message's.
    pub out_of_order: u64,
}

/// Reason why a text is not a program's output.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ToolError {
    /// The text is longer than [`BYTES_MAX`].
    #[error("{0} bytes; at most {BYTES_MAX} are read")]
    TooLong(usize),
    /// No known program prints this.
    #[error("it is no output of {}", Tool::names())]
    Unknown,
    /// Something is missing or damaged.
    /// - `why`: problem, such as "has no times".
    #[error("the output of {tool} {why}")]
    Damaged { tool: Tool, why: String },
}

impl Tool {
    /// Every program, lowlat first.
    pub const ALL: &[Self] = &[Self::Lowlat, Self::Sfnt, Self::Sockperf, Self::Netperf, Self::Eflatency];

    /// Returns the name of the program.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lowlat => "lowlat",
            Self::Sfnt => "sfnt-pingpong",
            Self::Sockperf => "sockperf",
            Self::Netperf => "netperf",
            Self::Eflatency => "eflatency",
        }
    }

    /// Returns the foreign program that a command starts, with or without a wrapper: `taskset -c 1 sockperf ...`,
    /// `onload --profile=latency sfnt-pingpong ...`.
    pub fn of_command(command: &[String]) -> Option<Self> {
        let name = |word: &String| word.rsplit('/').next().map(str::to_owned);
        let foreign = |word: String| Self::ALL.iter().copied().skip(1).find(|tool| tool.word() == word);
        command.iter().filter_map(name).find_map(foreign)
    }

    /// Names of the foreign programs, for errors.
    pub fn names() -> String {
        Self::ALL.iter().skip(1).map(|tool| tool.word()).collect::<Vec<_>>().join(", ")
    }

    /// Parses what the program printed. The command adds what it does not print: sockperf's size, netperf's duration.
    ///
    /// # Errors
    /// [`ToolError`] if the text is too long or not the program's.
    pub fn parse(self, text: &str, command: &[String]) -> Result<ToolOutput, ToolError> {
        if text.len() > BYTES_MAX {
            return Err(ToolError::TooLong(text.len()));
        }
        let parsed = match self {
            Self::Lowlat => Err("is a JSON document".to_owned()),
            Self::Sfnt => sfnt_pingpong::parse(text),
            Self::Sockperf => sockperf::parse(text, command),
            Self::Netperf => netperf::parse(text, command),
            Self::Eflatency => eflatency::parse(text),
        };
        let mut output = parsed.map_err(|why| ToolError::Damaged { tool: self, why })?;
        output.rows.iter_mut().for_each(ToolRow::keep_what_counts);
        if output.rows.iter().all(|row| row.mean_ns.or(row.p50_ns).or(row.p99_ns).is_none()) {
            let why = output
                .warnings
                .first()
                .map_or_else(String::new, |why| format!(": {}", why.trim_end_matches('.')));
            return Err(ToolError::Damaged { tool: self, why: format!("has no times{why}") });
        }
        Ok(output)
    }

    /// Recognises the program from what it printed.
    pub fn of_output(text: &str) -> Option<Self> {
        let has = |part: &str| text.contains(part);
        if has("ef_vi_version_str") || has("# eflatency test") {
            Some(Self::Eflatency)
        } else if text.lines().any(|line| sfnt::percentile_of(line).is_some()) {
            Some(Self::Sfnt)
        } else if has("sockperf:") {
            Some(Self::Sockperf)
        } else if netperf::is_output(text) {
            Some(Self::Netperf)
        } else {
            None
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Recognises a program's output and parses it.
///
/// # Errors
/// [`ToolError`] if no known program prints such a text.
pub fn parse(text: &str) -> Result<(Tool, ToolOutput), ToolError> {
    let tool = Tool::of_output(text).ok_or(ToolError::Unknown)?;
    tool.parse(text, &[]).map(|output| (tool, output))
}

impl ToolRow {
    /// Drops invalid times, and percentiles that the count does not support.
    fn keep_what_counts(&mut self) {
        let is_time = |ns: &f64| (0.0..=NS_MAX).contains(ns);
        let carries = |quantile| self.count.is_some_and(|count| carries_quantile(count, quantile));
        self.mean_ns = self.mean_ns.filter(is_time);
        self.p50_ns = self.p50_ns.filter(|ns| is_time(ns) && carries(0.5));
        self.p99_ns = self.p99_ns.filter(|ns| is_time(ns) && carries(0.99));
    }
}

/// The CPUs of client and server, if a program's command names both.
pub fn cpus_of(tool: Tool, command: &[String]) -> Option<(CpuId, CpuId)> {
    let (value, separator) = match tool {
        // "1,2" is one list for both ends there.
        Tool::Sfnt => (option(command, &["--affinity"])?, ';'),
        Tool::Netperf => (option(command, &["-T"])?, ','),
        Tool::Lowlat | Tool::Sockperf | Tool::Eflatency => return None,
    };
    let (client, server) = value.split_once(separator)?;
    Some((client.trim().parse().ok()?, server.trim().parse().ok()?))
}

/// The value of an option: `-m 32`, `-m32`, `--msg-size=32`.
fn option<'a>(command: &'a [String], names: &[&str]) -> Option<&'a str> {
    for (place, word) in command.iter().enumerate() {
        for name in names {
            let Some(rest) = word.strip_prefix(name) else { continue };
            let is_short = !name.starts_with("--");
            match rest {
                "" => return command.get(place + 1).map(String::as_str),
                rest if rest.starts_with('=') => return rest.strip_prefix('='),
                rest if is_short => return Some(rest),
                _ => {}
            }
        }
    }
    None
}

/// A finite number at the start of a text, after separators.
fn number_at(text: &str) -> Option<f64> {
    let text = text.trim_start_matches([' ', '\t', '=', ':']);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.get(..end)?.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests;
