//! `lowlat journal`: recordings of streams, listed, followed, checked, replayed, exported and
//! compared.

mod compress;
mod diff;
mod export;
mod ls;
mod payload;
pub mod record;
mod replay;
pub mod runs;
mod select;
mod show;
mod tail;
mod verify;

use super::{Subcommand, examples};
use crate::exit::Exit;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};

pub const COMMAND: Subcommand = Subcommand { name: "journal", declare: Action::augment_subcommands, run };

/// Record streams; list, follow, verify, replay, export and compare recordings
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat journal record --out monday", "Record the running pipeline until it ends."),
    ("lowlat journal ls monday", "List the streams of the recording in directory monday."),
    ("lowlat journal tail monday --stream 'orders.*' --follow", "Print orders as they are recorded."),
    ("lowlat journal verify monday && echo whole", "Check that every byte is intact (exit code 0)."),
    ("lowlat journal replay monday --speed 10", "Replay ten times as fast as recorded."),
    ("lowlat journal export monday --out monday.parquet", "Export a table for analysis tools."),
    ("lowlat journal diff monday tuesday", "Compare the orders of two runs (exit code 1 if they differ)."),
]))]
enum Action {
    /// Record the streams of a running pipeline, until it ends, Ctrl-C or --duration
    Record(record::Record),
    /// List the streams of a recording: records, sequences, missing records
    Ls(ls::Ls),
    /// Print the last records; with --follow also new ones
    Tail(tail::Tail),
    /// Check every byte, and report each damaged place with its offset and what is still readable
    Verify(verify::Verify),
    /// Compress the files of a recording that has ended, with zstd: all commands read them as before
    #[command(after_help = examples(&[("lowlat journal compress monday", "Compress the recording in directory monday.")]))]
    Compress(compress::Compress),
    /// Print the records at the pace of the recording, or another one
    Replay(replay::Replay),
    /// Export the records as a table in CSV or Parquet, with prices, quantities and times in
    /// columns
    Export(export::Export),
    /// Compare the orders of two recordings: missing, extra, changed, later or earlier
    Diff(diff::Diff),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Record(arguments) => record::run(&arguments),
        Action::Ls(arguments) => ls::run(&arguments),
        Action::Tail(arguments) => tail::run(&arguments),
        Action::Verify(arguments) => verify::run(&arguments),
        Action::Compress(arguments) => compress::run(&arguments),
        Action::Replay(arguments) => replay::run(&arguments),
        Action::Export(arguments) => export::run(&arguments),
        Action::Diff(arguments) => diff::run(&arguments),
    }
}
