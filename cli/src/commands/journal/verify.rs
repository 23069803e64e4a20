//! `lowlat journal verify`.

use crate::{exit::Exit, output, progress::Progress};
use clap::Args;
use lowlat_journal::read::{Recording, verify, write_missing_indexes};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Verify {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Exit with code 1 also if records were published while no recorder ran, or deleted with the
    /// oldest files
    #[arg(long)]
    no_gaps: bool,
    /// Rewrite index files that are missing or damaged
    #[arg(long)]
    write_indexes: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Verify) -> anyhow::Result<Exit> {
    let recording = Recording::open(&arguments.folder)?;
    let progress = Progress::new();
    let mut shown = 0;
    let known = verify(&recording, true, &mut |done, total| {
        // Update once per mille: a recording has many blocks.
        let now = done.saturating_mul(1000) / total.max(1);
        if now != shown {
            shown = now;
            progress.say(format!("{}.{} % checked", now / 10, now % 10));
        }
    });
    progress.finish();
    if arguments.write_indexes {
        let written = write_missing_indexes(&recording)?;
        output::talk(&format!("index files written: {written}"));
    }
    output::print_as(arguments.json, &output::Document::of("lowlat-journal", &known), |width| {
        lowlat_pipeline_report::journal_text(&known, recording.streams(), width)
    })?;
    let is_clean = known.is_complete() && !(arguments.no_gaps && known.gap_total().gaps > 0);
    Ok(if is_clean { Exit::Clean } else { Exit::Findings })
}
