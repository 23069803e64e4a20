//! Selection of records of a recording.

use anyhow::{Context, bail};
use clap::Args;
use lowlat_journal::read::{Merge, Recording};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Select {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Stream to read, or a prefix: orders.*; may be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub stream: Vec<String>,
    /// Skip records generated before this time, in ns of the stream's clock
    #[arg(long, value_name = "NS")]
    pub from_ns: Option<u64>,
    /// Stop at records generated at or after this time
    #[arg(long, value_name = "NS")]
    pub to_ns: Option<u64>,
}

impl Select {
    pub fn open(&self) -> anyhow::Result<Recording> {
        Ok(Recording::open(&self.folder)?)
    }

    /// Numbers of the selected streams.
    pub fn streams(&self, recording: &Recording) -> anyhow::Result<Vec<u32>> {
        if self.stream.is_empty() {
            return Ok((0..).take(recording.streams().len()).collect());
        }
        recording.choose(&self.stream).context("--stream")
    }

    /// The selected records in order of time.
    pub fn merge<'r>(&self, recording: &'r Recording) -> anyhow::Result<Merge<'r>> {
        if let (Some(from), Some(to)) = (self.from_ns, self.to_ns)
            && from >= to
        {
            bail!("--from-ns {from} is not before --to-ns {to}\nhint: swap them");
        }
        let mut merge = Merge::new(recording, &self.streams(recording)?);
        if let Some(from) = self.from_ns {
            merge.seek_time(from);
        }
        Ok(merge)
    }

    /// Whether a record of this time is past the end of the selection.
    pub fn is_behind(&self, generated: u64) -> bool {
        self.to_ns.is_some_and(|to| generated >= to)
    }
}
