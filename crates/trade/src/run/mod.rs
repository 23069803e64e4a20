//! One run of the whole pipeline: starts its processes, watches them while md publishes, stops them, and tells what came
//! of it.
//!
//! ```text
//! master in this thread; td, strategies (or their host), md are started: all have joined -> begin
//! -> md ends by itself when its schedule is over -> orders and answers come to rest -> stop -> record
//! ```
//!
//! [`run`] starts `lowlat` itself with the arguments of [`plan::programs`]; [`run_programs`] any other processes that join
//! as nodes `md` and `td` do: md ends when its schedule is over, they count in the areas `tally.md`, `tally.td` and `stages`.

mod outcome;
pub mod plan;
pub mod tally;
#[cfg(test)]
mod tests;
mod uses;
mod watch;

use crate::{
    address::{AddressError, RunFolder, Untrusted, holder, is_name},
    master::{MasterError, Program},
};
use lowlat_pipeline::{PipelineOptions, PipelineParameters, PipelineRecord};
use std::{
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};
use thiserror::Error;

/// Strategies of a run at most: nodes that there can be, without md, td and what else may join.
const STRATEGIES_MAX: u32 = 1000;
/// Last lines of a log that an error shows.
const LOG_LINES: usize = 5;

/// Why a run has no record.
#[derive(Debug, Error)]
pub enum RunError {
    /// A parameter that cannot be.
    #[error("{name}: found {found}, expected {expected}")]
    Parameter {
        /// Which one.
        name: &'static str,
        /// What was given.
        found: String,
        /// What may be given.
        expected: String,
    },
    /// No place for the run folder.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The master cannot go on.
    #[error(transparent)]
    Master(#[from] MasterError),
    /// Processes did not join.
    #[error(
        "{missing} did not join within {seconds} s{words}; look whether the host has CPU time and memory for them"
    )]
    NotJoined {
        /// Their names.
        missing: String,
        /// How long was waited.
        seconds: u64,
        /// What one of them wrote last.
        words: String,
    },
    /// A process ended and was not started again.
    #[error("process {name} ended: {reason}{words}")]
    Ended {
        /// Its name.
        name: String,
        /// How.
        reason: String,
        /// What it wrote last.
        words: String,
    },
    /// md did not come to its end.
    #[error(
        "md has not ended {seconds} s after the end of its schedule; run fewer ticks per second, or look what it does"
    )]
    Endless {
        /// How long was waited.
        seconds: u64,
    },
    /// The run folder is still there.
    #[error("the run folder is left behind: {0}")]
    Leftover(Untrusted),
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Processes are started and join.
    Joining,
    /// md publishes.
    Publishing,
    /// Orders and answers come to rest, processes end.
    Ending,
}

/// A look at a run, once a second or so.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far it is.
    pub phase: Phase,
    /// Processes that have joined.
    pub joined: u32,
    /// Processes that the run has.
    pub processes: u32,
    /// Since md may publish, seconds.
    pub elapsed_s: f64,
    /// Quotes published so far.
    pub ticks_published: u64,
    /// Orders that td has read so far.
    pub orders: u64,
    /// Records lost so far.
    pub lost: u64,
    /// Median of tick to order so far; `None` before there is one.
    pub t2o_p50_ns: Option<u64>,
}

/// Runs the pipeline with this `lowlat`. Blocks until it is over, or soon after `stop` is set: then the record is of what
/// was published until then, and says so.
pub fn run(
    parameters: &PipelineParameters,
    program: &Path,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, RunError> {
    run_with(parameters, &PipelineOptions::default(), program, progress, stop)
}

/// The same with options.
pub fn run_with(
    parameters: &PipelineParameters,
    options: &PipelineOptions,
    program: &Path,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, RunError> {
    check(parameters)?;
    let programs = plan::programs(parameters, options, program);
    in_folder(
        &Folder::make(options.name.as_deref())?,
        parameters,
        programs,
        options.memory_bytes_max,
        progress,
        stop,
    )
}

/// Runs the pipeline with these processes, in the order in which they are started. [`plan::MASTER`] in arguments and
/// environment stands for the master's socket. The names of md's and td's nodes must be `md` and `td`.
pub fn run_programs(
    parameters: &PipelineParameters,
    programs: Vec<Program>,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, RunError> {
    check(parameters)?;
    in_folder(&Folder::make(None)?, parameters, programs, None, progress, stop)
}

fn in_folder(
    folder: &Folder,
    parameters: &PipelineParameters,
    programs: Vec<Program>,
    memory_bytes_max: Option<u64>,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, RunError> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).replace(folder.folder.clone());
    let result = watch::watch(parameters, programs, folder.folder.clone(), memory_bytes_max, progress, stop);
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Err(RunError::Master(MasterError::Taken { .. } | MasterError::Folder(_))) = &result {
        // It is another run's, or another user's.
        return result;
    }
    let removed = folder.remove();
    let record = result?;
    removed?;
    Ok(record)
}

fn check(parameters: &PipelineParameters) -> Result<(), RunError> {
    let wrong = |name, found: String, expected: &str| RunError::Parameter {
        name,
        found,
        expected: expected.to_owned(),
    };
    if !(1..=STRATEGIES_MAX).contains(&parameters.strategies) {
        let expected = format!("1 to {STRATEGIES_MAX}");
        return Err(wrong("strategies", parameters.strategies.to_string(), &expected));
    }
    for (name, value) in [("rate_per_s", parameters.rate_per_s), ("duration_s", parameters.duration_s)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(wrong(name, value.to_string(), "a number above 0"));
        }
    }
    match parameters.pins.keys().find(|name| !is_name(name)) {
        Some(name) => Err(wrong("pins", name.clone(), "names of roles")),
        None => Ok(()),
    }
}

/// The folder of the run that goes on, for whoever ends the process without unwinding.
static CURRENT: Mutex<Option<RunFolder>> = Mutex::new(None);

/// Removes the folder of the run that goes on in this process, if any: for a process that is about to end at once. Its
/// processes end with the thread that runs it.
pub fn remove_folder() {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(folder) = current.filter(is_ours) {
        // Nobody is left to tell; a folder whose master is gone keeps nobody from anything.
        folder.remove().ok();
    }
}

/// Whether this process is, or was, the master of that folder.
fn is_ours(folder: &RunFolder) -> bool {
    folder.open_lock().ok().as_ref().and_then(holder) == Some(std::process::id())
}

/// The run folder, removed when the run is over.
#[derive(Debug)]
struct Folder {
    folder: RunFolder,
}

impl Folder {
    /// Of that name, or of one that no other run has.
    fn make(name: Option<&str>) -> Result<Self, RunError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        if let Some(name) = name {
            return Ok(Self { folder: RunFolder::named(name)? });
        }
        // Relaxed: only that no two are the same.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { folder: RunFolder::named(&format!("run-{}-{number}", std::process::id()))? })
    }

    fn remove(&self) -> Result<(), RunError> {
        match self.folder.remove() {
            Err(error) if !error.is_absent() => Err(RunError::Leftover(error)),
            _ => Ok(()),
        }
    }
}
