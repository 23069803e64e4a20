//! `lowlat journal replay`.

use super::{
    select::Select,
    show::{self, Printer},
    tail::print,
};
use crate::{exit::Exit, output, signals};
use clap::Args;
use lowlat_journal::replay::{ReplaySpeed, replay};
use std::{
    io::{self, BufWriter, IsTerminal, Write},
    ops::ControlFlow,
};

#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    select: Select,
    /// Speed as a multiple of the original: 1, 10, 0.5; or max: without pauses
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = speed)]
    speed: ReplaySpeed,
    /// Print each record and a final summary as one line of JSON each
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<ReplaySpeed, String> {
    if text == "max" {
        return Ok(ReplaySpeed::Max);
    }
    let expected = || format!("{text:?}: expected a number above 0, such as 1 or 10, or max");
    text.parse()
        .ok()
        .filter(|times: &f64| times.is_finite() && *times > 0.0)
        .map(ReplaySpeed::Times)
        .ok_or_else(expected)
}

/// Bytes written at once at full speed.
const BLOCK_BYTES: usize = 1 << 16;

/// Like [`print()`], in blocks or at once.
fn line(out: &mut impl Write, line: Option<String>, in_blocks: bool) -> anyhow::Result<bool> {
    match line {
        Some(line) if in_blocks => output::is_read(writeln!(out, "{}", output::own_styles(&line))),
        line => print(out, line),
    }
}

pub fn run(arguments: &Replay) -> anyhow::Result<Exit> {
    let selection = arguments.select.open()?;
    let (recording, mut merge) = (&selection.recording, selection.merge()?);
    let printer = Printer::new(recording, arguments.json);
    let stop = signals::stop_flag()?;
    let mut out = BufWriter::with_capacity(BLOCK_BYTES, anstream::stdout().lock());
    let in_blocks = arguments.speed == ReplaySpeed::Max && !io::stdout().is_terminal();
    let (mut failed, mut is_cut) = (None, false);
    let replayed = replay(
        |payload| selection.next(&mut merge, payload),
        arguments.speed,
        &stop,
        |read, payload| match line(&mut out, printer.line(recording.streams(), read, payload), in_blocks) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => {
                is_cut = true;
                ControlFlow::Break(())
            }
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        },
    );
    if let Some(error) = failed {
        return Err(error);
    }
    is_cut |= !output::is_read(out.flush())?;
    if arguments.json {
        print(&mut out, Some(show::json_text(serde_json::json!({ "replayed": replayed }))))?;
    } else {
        let late = match arguments.speed {
            ReplaySpeed::Max => String::new(),
            ReplaySpeed::Times(_) => format!(", {} us late at most", replayed.late_ns_max.div_ceil(1000)),
        };
        output::talk(&format!(
            "replayed {} records of {:.3} s in {:.3} s{late}; {}",
            replayed.records,
            replayed.recorded_ns as f64 / 1e9,
            replayed.took_ns as f64 / 1e9,
            show::missing(replayed.lost, replayed.missed, replayed.damages)
        ));
    }
    show::talk_if_live(recording);
    Ok(Exit::of_run(replayed.is_stopped && !is_cut, replayed.is_complete()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_above_zero() {
        assert_eq!((speed("max"), speed("2.5")), (Ok(ReplaySpeed::Max), Ok(ReplaySpeed::Times(2.5))));
        for wrong in ["0", "-1", "inf", "nan", "fast", ""] {
            assert!(speed(wrong).unwrap_err().contains("expected a number above 0"), "{wrong}");
        }
    }
}
