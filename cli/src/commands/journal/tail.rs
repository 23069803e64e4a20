//! `lowlat journal tail`.

use super::{
    select::{Select, Selection},
    show::Printer,
};
use crate::{exit::Exit, output, signals};
use clap::Args;
use lowlat_journal::read::{self, JournalRead, Record, last_records};
use std::{io::Write, ops::RangeInclusive, sync::atomic::Ordering, time::Duration};

/// Interval at which an idle recording is checked.
const LOOK: Duration = Duration::from_millis(100);
/// Largest number of records: they are held in memory.
const LINES_MAX: u64 = 1_000_000;

#[derive(Debug, Args)]
pub struct Tail {
    #[command(flatten)]
    select: Select,
    /// Number of records
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=LINES_MAX))]
    lines: u64,
    /// Continue with new records, until Ctrl-C or the recording ends
    #[arg(long, short)]
    follow: bool,
    /// Print each record as one line of JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &Tail) -> anyhow::Result<Exit> {
    let selection = arguments.select.open()?;
    let (recording, streams) = (&selection.recording, selection.streams()?);
    let printer = Printer::new(recording, arguments.json);
    let mut out = anstream::stdout().lock();
    // Taken before the last records are read, so that none falls between.
    let tail = read::TailReader::from_now(recording);
    let lines = usize::try_from(arguments.lines).unwrap_or(usize::MAX);
    let is_chosen = |times: RangeInclusive<u64>, record: Option<(&Record, &[u8])>| {
        selection.is_within(&times) && record.is_none_or(|(record, payload)| selection.takes(record, payload))
    };
    // Earlier damage counts too: the exit code is the same as that of every other command.
    let elsewhere = read::inspect(recording).count();
    let (mut findings, mut shown) = (0, 0);
    for (read, payload) in last_records(recording, &streams, lines, &is_chosen) {
        shown += usize::from(matches!(read, JournalRead::Damaged(_)));
        findings += u64::from(is_finding(&read));
        if !print(&mut out, printer.line(recording.streams(), &read, &payload))? {
            return Ok(Exit::Clean);
        }
    }
    if elsewhere > shown {
        output::talk(&format!("damaged places: {elsewhere}\nhint: `lowlat journal verify` lists them"));
    }
    if arguments.follow {
        findings += follow(arguments, &selection, tail, &printer, &mut out)?;
    }
    Ok(if findings == 0 && elsewhere == 0 { Exit::Clean } else { Exit::Findings })
}

/// True for damage, and for a gap of records that were published while a recorder ran.
fn is_finding(read: &JournalRead) -> bool {
    match read {
        JournalRead::Damaged(_) => true,
        JournalRead::Gap(gap) => gap.is_loss(),
        _ => false,
    }
}

fn follow(
    arguments: &Tail,
    selection: &Selection<'_>,
    mut tail: read::TailReader,
    printer: &Printer,
    out: &mut impl Write,
) -> anyhow::Result<u64> {
    let stop = signals::stop_flag()?;
    let (mut payload, mut findings) = (Vec::new(), 0);
    let chosen = &arguments.select.stream;
    // Relaxed: a lone flag.
    while !stop.load(Ordering::Relaxed) {
        let read = tail.next(&mut payload);
        let stream = match &read {
            JournalRead::Nothing => {
                std::thread::sleep(LOOK);
                continue;
            }
            JournalRead::Ended => {
                output::talk(&format!("{}: the recording has ended", selection.recording.folder().display()));
                break;
            }
            JournalRead::Record(record) if selection.is_behind(record.record.stamp.generated) => break,
            JournalRead::Record(record) if !selection.takes(record, &payload) => continue,
            JournalRead::Record(record) => Some(record.stream),
            JournalRead::Gap(gap) => Some(gap.stream),
            JournalRead::Damaged(_) => None,
        };
        let is_chosen = stream.is_none_or(|stream| {
            let name = super::show::name(tail.streams(), stream);
            chosen.is_empty() || chosen.iter().any(|pattern| read::fits(pattern, &name))
        });
        findings += u64::from(is_chosen && is_finding(&read));
        if is_chosen && !print(out, printer.line(tail.streams(), &read, &payload))? {
            break;
        }
    }
    Ok(findings)
}

/// Prints a line at once. Returns false if the reader of stdout has closed it.
pub fn print(out: &mut impl Write, line: Option<String>) -> anyhow::Result<bool> {
    let Some(line) = line else { return Ok(true) };
    output::is_read(writeln!(out, "{}", output::own_styles(&line)).and_then(|()| out.flush()))
}
