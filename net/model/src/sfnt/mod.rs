//! Output of sfnt-pingpong: 1.0.0 to 1.6.0 are read and judged, 1.5.0 and 1.6.0 written.

mod command_line;
mod doubts;
mod parse;
pub mod reference;
mod stream;
mod write;

pub use command_line::SfntCommandLine;
pub use doubts::doubts;
pub(crate) use parse::percentile_of;
pub use parse::{BYTES_MAX, SfntError, parse};
pub use stream::stream_text;
pub use write::{HeaderFacts, InterfaceFacts, Version, log_of};

use crate::pingpong::Figures;
use serde::Serialize;
use std::fmt;

/// Heads of the columns, in order.
pub(crate) const COLUMNS: [&str; 8] = ["size", "mean", "min", "median", "max", "%ile", "stddev", "iter"];

/// Output of one run of sfnt-pingpong.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SfntLog {
    /// Lines before the header, such as Onload's banner.
    pub banner: Vec<String>,
    /// Lines of the header, in order.
    pub header: Vec<HeaderLine>,
    pub rows: Vec<SfntRow>,
    /// Lines of the table that are no rows, or damaged ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<SfntError>,
}

/// One line of the header: `# cmdline: ...`, `# percentile=99`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HeaderLine {
    pub key: String,
    pub value: String,
    /// True if the separator is an equals sign, false if it is a colon.
    #[serde(skip)]
    pub is_assigned: bool,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SfntRow {
    /// Size of the messages in bytes.
    pub size_bytes: u32,
    /// The other columns: half round trips, unless the header says otherwise.
    #[serde(flatten)]
    pub figures: Figures,
}

impl SfntLog {
    /// Value of the first header line with this key.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.header.iter().find(|line| line.key == key).map(|line| line.value.as_str())
    }

    /// Values of every header line with this key.
    pub fn values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.header.iter().filter(move |line| line.key == key).map(|line| line.value.as_str())
    }

    /// The percentile of the column `%ile`, between 0 and 100. 1.3.0 and 1.4.0 do not print it; their default is 99.
    pub fn percentile(&self) -> Option<f64> {
        let line = self.command_line();
        let of_line = line.as_ref().map(|line| line.option("percentile").unwrap_or("99"));
        self.value("percentile").or(of_line)?.parse().ok().filter(|of| (0.0..=100.0).contains(of))
    }

    /// True if the figures are whole round trips: `--rtt`, which the header shows since 1.6.0.
    pub fn is_round_trip(&self) -> bool {
        let has_option = || self.command_line().is_some_and(|line| line.option("rtt").is_some());
        self.value("reporting").map_or_else(has_option, |reporting| reporting == "RTT")
    }

    /// A sentence for each of [`SfntLog::damaged`].
    pub(crate) fn left_out(&self) -> impl Iterator<Item = String> {
        self.damaged.iter().map(|error| format!("Left out: {error}."))
    }

    /// CPUs of client and server. Up to 1.2.0 the header has them, and a comma separates them.
    pub fn affinity(&self) -> Option<(u32, u32)> {
        let Some(cpus) = self.value("affinity") else { return self.command_line()?.affinity() };
        let (client, server) = cpus.split_once(',')?;
        Some((client.trim().parse().ok()?, server.trim().parse().ok()?))
    }

    /// The command line, in parts.
    pub fn command_line(&self) -> Option<SfntCommandLine> {
        self.value("cmdline").map(SfntCommandLine::parse)
    }
}

impl fmt::Display for HeaderLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, is_assigned } = self;
        match (is_assigned, value.as_str()) {
            (true, value) => write!(f, "# {key}={value}"),
            (false, "") => write!(f, "# {key}:"),
            (false, value) => write!(f, "# {key}: {value}"),
        }
    }
}

impl fmt::Display for SfntLog {
    /// The text as sfnt-pingpong prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.banner {
            writeln!(f, "{line}")?;
        }
        for line in &self.header {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "#\n#\t{}", COLUMNS.join("\t"))?;
        for SfntRow { size_bytes, figures } in &self.rows {
            let Figures { mean_ns, min_ns, median_ns, max_ns, percentile_ns, stddev_ns, iterations } =
                figures;
            writeln!(
                f,
                "\t{size_bytes}\t{mean_ns}\t{min_ns}\t{median_ns}\t{max_ns}\t{percentile_ns}\t{stddev_ns}\t{iterations}"
            )?;
        }
        Ok(())
    }
}
