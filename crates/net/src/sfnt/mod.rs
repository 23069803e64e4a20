//! Output of sfnt-pingpong 1.5.0 and 1.6.0: read, judged and written.

mod command_line;
mod doubts;
mod parse;
pub mod reference;
mod stream;
mod write;

pub use command_line::CommandLine;
pub use doubts::doubts;
pub use parse::{BYTES_MAX, SfntError, parse};
pub use stream::stream_text;
pub use write::{HeaderFacts, InterfaceFacts, Version, log_of};

use crate::pingpong::Figures;
use serde::Serialize;
use std::fmt;

/// Heads of the columns, in order.
pub(crate) const COLUMNS: [&str; 8] = ["size", "mean", "min", "median", "max", "%ile", "stddev", "iter"];

/// Output of one run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SfntLog {
    /// Lines before the header, such as Onload's banner.
    pub banner: Vec<String>,
    /// The header, in order.
    pub header: Vec<HeaderLine>,
    /// The table.
    pub rows: Vec<SfntRow>,
}

/// One line of the header: `# cmdline: ...`, `# percentile=99`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct HeaderLine {
    /// Text before the separator.
    pub key: String,
    /// Text after it.
    pub value: String,
    /// Whether the separator is an equals sign; a colon otherwise.
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

    /// The percentile of the column `%ile`, between 0 and 100.
    pub fn percentile(&self) -> Option<f64> {
        self.value("percentile")?.parse().ok().filter(|percentile| (0.0..=100.0).contains(percentile))
    }

    /// Whether the figures are whole round trips (1.6.0 with `--rtt`).
    pub fn is_round_trip(&self) -> bool {
        self.value("reporting") == Some("RTT")
    }

    /// The command line, in parts.
    pub fn command_line(&self) -> Option<CommandLine> {
        self.value("cmdline").map(CommandLine::parse)
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
