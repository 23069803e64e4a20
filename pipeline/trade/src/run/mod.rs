//! One run of the whole pipeline: starts its processes, watches them while md publishes, stops them, and
//! reports the results.
//!
//! ```text
//! master in this thread; td, strategies (or their host), md are started: all have joined -> begin
//! -> md ends when its schedule has ended -> orders and answers come to rest -> stop -> record
//! ```
//!
//! [`plan::programs`] are processes of `lowlat` itself; any others that join as nodes like `md` and `td` do too:
//! md ends when its schedule has ended, and they count in the areas `tally.md`, `tally.td` and `stages`.

mod outcome;
pub mod plan;
pub mod tally;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod uses;
mod watch;

use crate::master::Program;
use lowlat_node::{
    Refusal,
    address::{RunFolder, holder},
};
pub use lowlat_pipeline::{Phase, Progress};
use lowlat_pipeline::{PipelineOptions, PipelineParameters, PipelineRecord};
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// Maximum number of strategies of a run with a process each: the number of nodes, without md, td and others that
/// may join.
pub const STRATEGIES_MAX: u32 = 1_000;
/// Maximum number of strategies of a run in a host.
pub const HOSTED_MAX: u32 = 10_000;
/// Below the maximum of a pipeline, so that strategies of other nodes have numbers.
const _: () = assert!(HOSTED_MAX < lowlat_node::STRATEGIES_MAX);
/// Last lines of a log that an error quotes.
const LOG_LINES: usize = 5;

/// Runs the pipeline with these processes, started in this order. [`plan::MASTER`] in arguments and environment
/// stands for the master's socket. The nodes of md and td must be named `md` and `td`. Blocks until the run has
/// ended, or soon after `stop` is set: then the record covers what was published until then, and says so.
pub fn run(
    parameters: &PipelineParameters,
    programs: Vec<Program>,
    options: &PipelineOptions,
    progress: &mut dyn FnMut(&Progress),
    stop: &AtomicBool,
) -> Result<PipelineRecord, Refusal> {
    check(parameters, options, programs.iter().any(|program| program.role == plan::OWN))?;
    let folder = folder(options.name.as_deref())?;
    current().replace(folder.clone());
    let result = watch::watch(parameters, programs, folder.clone(), options, progress, stop);
    current().take();
    if result.as_ref().is_err_and(Refusal::is_of_path) {
        // It belongs to another run or user.
        return result;
    }
    let removed = folder.remove();
    let record = result?;
    match removed {
        Err(error) if !error.is_absent() => {
            Err(Refusal::new(format!("cannot remove the run folder: {error}")))
        }
        _ => Ok(record),
    }
}

/// Executes runs, one after the other.
pub trait Runner {
    /// Executes a run. If the user interrupts it, the results so far are returned.
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<PipelineRecord, Refusal>;
}

/// One of several runs, for those who watch.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// Its number, from 1.
    pub number: usize,
    pub total: usize,
    /// Purpose of the run: a row, or a step of a sizing.
    pub name: &'a str,
    pub parameters: &'a PipelineParameters,
}

/// Callback that gets each run and its progress.
pub type Watch<'a> = dyn FnMut(&Turn<'_>, &Progress) + 'a;

/// An error with its hint on one line, for a warning.
pub(crate) fn on_one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().replace("\nhint: ", "; ")
}

fn check(
    parameters: &PipelineParameters,
    options: &PipelineOptions,
    has_own_strategies: bool,
) -> Result<(), Refusal> {
    let wrong = |name, found: &dyn std::fmt::Display, expected: &str| {
        Err(Refusal::new(format!("{name}: found {found}, expected {expected}")))
    };
    let most = if parameters.host_core.is_some() { HOSTED_MAX } else { STRATEGIES_MAX };
    // Other nodes may be the only strategies.
    let least = u32::from(options.replay.is_none() && !has_own_strategies);
    if !(least..=most).contains(&parameters.strategies) {
        return wrong("strategies", &parameters.strategies, &format!("{least} to {most}"));
    }
    for (name, value) in [("rate_per_s", parameters.rate_per_s), ("duration_s", parameters.duration_s)] {
        if !(value.is_finite() && value > 0.0) {
            return wrong(name, &value, "a number above 0");
        }
    }
    Ok(())
}

/// Folder of the current run, for code that ends the process without unwinding.
fn current() -> MutexGuard<'static, Option<RunFolder>> {
    static CURRENT: Mutex<Option<RunFolder>> = Mutex::new(None);
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the folder of the current run of this process, if any: for a process that is about to end at once.
/// Its processes end with the thread that runs it.
pub fn remove_folder() {
    let folder = current().take();
    if let Some(folder) = folder.filter(is_ours) {
        // Nobody is left to report to; a folder without a master blocks nothing.
        folder.remove().ok();
    }
}

/// True if this process is, or was, the master of that folder.
fn is_ours(folder: &RunFolder) -> bool {
    folder.open_lock().ok().as_ref().and_then(holder) == Some(std::process::id())
}

/// A run folder with that name, or with a unique one.
fn folder(name: Option<&str>) -> Result<RunFolder, Refusal> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if let Some(name) = name {
        return RunFolder::named(name);
    }
    // Relaxed: only uniqueness matters.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    RunFolder::named(&format!("run-{}-{number}", std::process::id()))
}
