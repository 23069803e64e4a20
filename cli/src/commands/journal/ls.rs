//! `lowlat journal ls`.

use crate::{exit::Exit, output};
use clap::Args;
use lowlat_journal::read::{Recording, verify};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Ls {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Ls) -> anyhow::Result<Exit> {
    let recording = Recording::open(&arguments.folder)?;
    let known = verify(&recording, false, &mut |_, _| ());
    output::print_as(arguments.json, &output::Document::of("lowlat-journal", &known), |width| {
        lowlat_pipeline_report::journal_text(&known, recording.streams(), width)
    })?;
    if !arguments.json && known.damage_count > 0 {
        let more = "hint: `lowlat journal verify` lists them";
        output::talk(&format!("damaged places: {}\n{more}", known.damage_count));
    }
    Ok(if known.is_complete() { Exit::Clean } else { Exit::Findings })
}
