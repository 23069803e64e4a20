//! `lowlat journal export`.

use super::{payload::TradeDecoder, select::Select, show};
use crate::{exit::Exit, output, progress::Progress, results, signals};
use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use lowlat_host_run::output::{FileAccess, OutputError, OutputFile};
use lowlat_journal::export::{ExportError, Table, columns, export};
use std::{
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

/// Largest number of gaps and damaged places that are listed.
const NAMED_MAX: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Comma-separated values with a header line
    #[cfg(feature = "csv")]
    Csv,
    /// Apache Parquet, compressed with Snappy
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    fn is_text(self) -> bool {
        match self {
            #[cfg(feature = "csv")]
            Self::Csv => true,
            #[cfg(feature = "parquet")]
            Self::Parquet => false,
        }
    }
}

#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    select: Select,
    /// Names of the instruments 0, 1, ..., for the column symbol [default: those that the recording keeps]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Output file; - writes to stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Format [default: from the file's extension, else csv]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print a summary as JSON (needs --out)
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Export) -> anyhow::Result<Exit> {
    let is_stdout = arguments.out == Path::new("-");
    if arguments.json && is_stdout {
        bail!("cannot print the table and the summary of --json on stdout\nhint: name a file with --out");
    }
    let format = format(arguments)?;
    let selection = arguments.select.open()?;
    let (recording, mut merge) = (&selection.recording, selection.merge()?);
    let named = Some(&arguments.symbols).filter(|symbols| !symbols.is_empty()).cloned();
    let decoder = TradeDecoder { symbols: named.unwrap_or_else(|| recording.symbols()) };
    let stop = signals::stop_flag()?;
    let failed = |error: OutputError| results::in_words(&error, "name another file with --out");
    // Private mode: recordings hold orders.
    let file = (!is_stdout)
        .then(|| OutputFile::new(&arguments.out, FileAccess::Private))
        .transpose()
        .map_err(failed)?;
    let unfinished = file.as_ref().map(OutputFile::create).transpose().map_err(failed)?;
    let sink: Box<dyn Write + Send> = match &unfinished {
        None if io::stdout().is_terminal() => {
            ensure!(format.is_text(), "cannot print Parquet on a terminal\nhint: name a file with --out");
            Box::new(BufWriter::new(output::Shown::new(io::stdout())))
        }
        None => Box::new(BufWriter::new(io::stdout())),
        Some(unfinished) => Box::new(BufWriter::new(unfinished.writer().map_err(failed)?)),
    };
    // A table on the terminal or in a pipe shows its own progress.
    let progress = (!is_stdout).then(Progress::new);
    let (mut rows, mut is_stopped) = (0_u64, false);
    let exported = table(format, sink).and_then(|table| {
        export(recording, |payload| selection.next(&mut merge, payload), &decoder, table, &mut |_| {
            rows += 1;
            if let Some(progress) = progress.as_ref().filter(|_| rows % 10_000 == 1) {
                progress.say(format!("{} records", rows - 1));
            }
            // Relaxed: a lone flag.
            is_stopped = stop.load(Ordering::Relaxed);
            !is_stopped
        })
    });
    if let Some(progress) = &progress {
        progress.finish();
    }
    let exported = match exported {
        Err(ExportError::Io(error)) if is_stdout && error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Exit::Clean);
        }
        Err(error) => return Err(error).with_context(|| arguments.out.display().to_string()),
        Ok(exported) => exported,
    };
    if let Some(unfinished) = unfinished {
        unfinished.finish().map_err(failed)?;
    }
    if arguments.json {
        output::print_json(&output::Document::of("lowlat-journal-export", &exported))?;
    } else {
        for gap in exported.gaps.iter().take(NAMED_MAX) {
            output::talk(&format!("missing: {}", show::gap(recording.streams(), gap)));
        }
        for damage in exported.damaged.iter().take(NAMED_MAX) {
            output::talk(&format!("damaged: {}", show::damage(recording.streams(), damage)));
        }
        if exported.gaps.len().max(exported.damaged.len()) > NAMED_MAX {
            output::talk("and more\nhint: `lowlat journal verify` lists them");
        }
        output::talk(&format!(
            "exported {} records, {} of them decoded; {}",
            exported.rows,
            exported.decoded,
            show::missing(exported.lost, exported.missed, exported.damages)
        ));
    }
    show::talk_if_live(recording);
    Ok(Exit::of_run(is_stopped, exported.is_complete()))
}

/// The requested format, or that of the file's extension.
fn format(arguments: &Export) -> anyhow::Result<Format> {
    if let Some(format) = arguments.format {
        return Ok(format);
    }
    let ending = arguments.out.extension().and_then(|ending| ending.to_str()).unwrap_or("csv");
    Format::from_str(ending, true).map_err(|_| {
        anyhow::anyhow!(
            "cannot derive a format from the name {}\nhint: name one with --format",
            arguments.out.display()
        )
    })
}

fn table(format: Format, sink: Box<dyn Write + Send>) -> Result<Box<dyn Table>, ExportError> {
    let columns = columns(&TradeDecoder::default());
    match format {
        #[cfg(feature = "csv")]
        Format::Csv => Ok(Box::new(lowlat_journal::export::CsvTable::new(sink, &columns)?)),
        #[cfg(feature = "parquet")]
        Format::Parquet => Ok(Box::new(lowlat_journal::export::ParquetTable::new(sink, &columns)?)),
    }
}
