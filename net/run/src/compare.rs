//! Runs the sides of a comparison in turn.

use super::{
    client::{ClientOptions, run as run_client},
    core_to_core,
    error::PingpongError,
    foreign::{self, Printed},
    place,
};
use lowlat_host::CpuId;
use lowlat_host::printable::without_hint;
use lowlat_host_run::Root;
use lowlat_host_run::programs::last_line;
use lowlat_jitter_run::clock::{ArchCounter, ClockError, TickScale, frequency_of};
use lowlat_net::{
    compare::{CompareRecord, CompareRun, CompareSide},
    pingpong::{ControlRow, PingpongRecord, SizeRecord},
    tools::{Tool, ToolError, ToolRow, cpus_of},
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};
use thiserror::Error;

/// Steps of lowlat's figures, in nanoseconds.
const STEP_NS: f64 = 1.0;

/// Program that runs on one side.
#[derive(Debug, Clone, PartialEq)]
pub enum SideOptions {
    /// A client of `lowlat net pingpong`.
    Lowlat(Box<ClientOptions>),
    /// Another program with its arguments.
    Foreign(Tool, Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct CompareOptions {
    /// The sides with their arguments as the user typed them, A first.
    pub sides: Vec<(String, SideOptions)>,
    /// Rounds, each of one run of every side.
    pub rounds: u32,
    /// CPUs of client and server, for the control of foreign programs.
    pub cpus: Option<(CpuId, CpuId)>,
}

/// Error that prevents a comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    #[error("side {side}: {source}")]
    Client { side: String, source: PingpongError },
    /// A program did not start.
    #[error("side {side}: cannot start {program}: {source}\nhint: install it, or name its path")]
    Start { side: String, program: String, source: io::Error },
    /// A program printed no result.
    /// - `source`: error found in its output.
    /// - `said`: last line of its standard error, in brackets; empty if it printed none.
    #[error(
        "side {side}: cannot measure: {source}{said}\nhint: start the server of {tool}, and run the command alone once"
    )]
    Output { side: String, tool: Tool, source: ToolError, said: String },
    /// The counter cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
}

/// Measures every side in turn. Ends early, with what it has, when `stop` is raised. `on_run` gets each round, from 0,
/// and the name of the side that starts.
///
/// # Errors
/// [`CompareError`] if a side fails in the first round; later, the record has a warning.
pub fn run(
    root: &Root,
    options: &CompareOptions,
    stop: &AtomicBool,
    on_run: &dyn Fn(u32, &str),
) -> Result<CompareRecord, CompareError> {
    let side = |(place, (command, of)): (usize, &(String, SideOptions))| CompareSide {
        name: CompareSide::name_of(place),
        tool: match of {
            SideOptions::Lowlat(_) => Tool::Lowlat,
            SideOptions::Foreign(tool, _) => *tool,
        },
        command: command.clone(),
    };
    let mut record = CompareRecord {
        sides: options.sides.iter().enumerate().map(side).collect(),
        rounds: options.rounds,
        ..CompareRecord::default()
    };
    let scale = TickScale::new(frequency_of(ArchCounter::KIND, root)?.hz);
    let mut rounds = Rounds { root, scale, stop, cpus: options.cpus, warnings: Vec::new() };
    for round in 0..options.rounds {
        for place in CompareRecord::order(options.sides.len(), round) {
            // Relaxed: set by the signal handler; orders nothing.
            let side = options.sides.get(place).filter(|_| !stop.load(Ordering::Relaxed));
            let Some((_, side)) = side else { continue };
            let name = CompareSide::name_of(place);
            on_run(round, &name);
            match rounds.measure(side, &name) {
                // An interrupted run does not count as a round.
                _ if stop.load(Ordering::Relaxed) => {}
                Ok((rows, controls)) => {
                    let place = u32::try_from(place).unwrap_or(u32::MAX);
                    record.runs.push(CompareRun { round, side: place, rows, controls });
                }
                Err(error) if round == 0 => return Err(error),
                Err(error) => {
                    rounds.warn(format!("Round {}: {}.", round + 1, without_hint(&error)));
                }
            }
        }
    }
    if record.controls().next().is_none() {
        rounds.warn("There was no control: name the CPUs of client and server with --cpus.".to_owned());
    }
    record.warnings = rounds.warnings;
    Ok(record)
}

struct Rounds<'a> {
    root: &'a Root,
    scale: TickScale,
    stop: &'a AtomicBool,
    /// CPUs of the controls beside foreign programs, once they are known.
    cpus: Option<(CpuId, CpuId)>,
    warnings: Vec<String>,
}

impl Rounds<'_> {
    fn measure(
        &mut self,
        side: &SideOptions,
        name: &str,
    ) -> Result<(Vec<ToolRow>, Vec<ControlRow>), CompareError> {
        match side {
            SideOptions::Lowlat(options) => {
                let side = name.to_owned();
                let measured = run_client(self.root, options, self.stop, &|_| {})
                    .map_err(|source| CompareError::Client { side, source })?;
                if self.cpus.is_none() && measured.is_same_host {
                    self.cpus = measured.client.cpu.zip(measured.server.cpu).filter(|(a, b)| a != b);
                }
                let doubts =
                    measured.unsound.iter().map(ToString::to_string).chain(measured.warnings.iter().cloned());
                doubts.for_each(|doubt| self.warn(format!("{name}: {doubt}")));
                if measured.sizes.iter().any(|size| size.lost_count > 0) {
                    self.warn(format!("{name}: messages were lost; they are in no figure."));
                }
                Ok((rows_of(&measured), measured.controls))
            }
            SideOptions::Foreign(tool, command) => self.foreign(*tool, command, name),
        }
    }

    fn foreign(
        &mut self,
        tool: Tool,
        command: &[String],
        name: &str,
    ) -> Result<(Vec<ToolRow>, Vec<ControlRow>), CompareError> {
        let cpus = self.cpus.or_else(|| cpus_of(tool, command));
        let cpus = cpus.filter(|(a, b)| a != b && place::is_usable(*a) && place::is_usable(*b));
        let mut controls = Vec::new();
        if let Some((client, server)) = cpus {
            match core_to_core::measure(client, server, self.scale, 0) {
                Ok(row) => controls.push(row),
                Err(sentence) => self.warn(sentence),
            }
        }
        let Printed { text, errors } =
            foreign::run(command, self.stop).map_err(|source| CompareError::Start {
                side: name.to_owned(),
                program: command.first().cloned().unwrap_or_default(),
                source,
            })?;
        let text = lowlat_net::plain(text.as_bytes());
        let output = tool.parse(&text, command).map_err(|source| CompareError::Output {
            side: name.to_owned(),
            tool,
            source,
            said: last_line(&errors).map(|line| format!(" ({line})")).unwrap_or_default(),
        })?;
        output.warnings.into_iter().for_each(|warning| self.warn(format!("{name}: {warning}")));
        Ok((output.rows, controls))
    }

    fn warn(&mut self, sentence: String) {
        if !self.warnings.contains(&sentence) {
            self.warnings.push(sentence);
        }
    }
}

/// lowlat's figures in the form of other programs'.
pub fn rows_of(record: &PingpongRecord) -> Vec<ToolRow> {
    let row = |size: &SizeRecord| {
        let quantile = |wanted: f64| size.quantile_ns(wanted).map(|ns| ns as f64);
        ToolRow {
            size_bytes: Some(size.size_bytes),
            count: Some(size.figures.iterations),
            mean_ns: Some(size.figures.mean_ns as f64),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            mean_step_ns: STEP_NS,
            quantile_step_ns: STEP_NS,
            ..ToolRow::default()
        }
    };
    record.sizes.iter().map(row).collect()
}
