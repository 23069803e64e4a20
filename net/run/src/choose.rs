//! Tries the waiting modes in turn.

use super::{
    client::{ClientOptions, run as run_client},
    error::PingpongError,
};
use lowlat_host::printable::without_hint;
use lowlat_host_run::Root;
use lowlat_net::{
    capital,
    choose::{ChoiceRecord, ChoiceStudy, Goal, Mode, ModeRecord, ModeRound},
    compare::CompareRecord,
    pingpong::{PingpongRecord, Scenario, Unsound, control_moved},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Length of the run that shows whether a mode is available, in milliseconds.
const PROBE_MS: u64 = 20;
/// Fewest round trips of that run.
const PROBE_ITERATIONS_MIN: u64 = 20;

/// Most rounds, as a multiple of those asked for, while the choice is undecided.
const ROUNDS_FACTOR_MAX: u32 = 3;

#[derive(Debug, Clone, PartialEq)]
pub struct ChooseOptions {
    /// Goal that a mode must reach.
    pub goal: Goal,
    /// Scenario that every mode measures. It has one size; each mode sets how it waits.
    pub scenario: Scenario,
    /// Address of the server: `host:port`.
    pub server: String,
    /// Rounds, each of one run of every mode; up to three times as many while the choice is undecided.
    pub rounds: u32,
    /// Measures unsound set-ups too (`--force`).
    pub is_forced: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ChooseEvent {
    /// Checks whether a mode is available.
    Checks(Mode),
    /// Measures a mode in a round, from 0.
    Measures { round: u32, mode: Mode },
    /// Repeats a round because the control moved in it.
    Repeats(u32),
}

/// Tries every mode that both hosts have. Ends early, with what it has, when `stop` is raised.
///
/// # Errors
/// [`PingpongError`] if the server cannot be reached, or the scenario cannot be measured.
pub fn run(
    root: &Root,
    options: &ChooseOptions,
    stop: &AtomicBool,
    on_event: &dyn Fn(&ChooseEvent),
) -> Result<ChoiceRecord, PingpongError> {
    let record = ChoiceRecord {
        goal: options.goal,
        scenario: options.scenario.clone(),
        server_name: options.server.clone(),
        ..ChoiceRecord::default()
    };
    let mut search = Search { root, options, stop, record };
    for mode in Mode::ALL {
        on_event(&ChooseEvent::Checks(mode));
        let unavailable = search.check(mode)?;
        search.record.modes.push(ModeRecord { mode, unavailable, rounds: Vec::new() });
    }
    for round in 0..options.rounds.saturating_mul(ROUNDS_FACTOR_MAX) {
        // Further rounds only where they may change the choice.
        if round >= options.rounds && !ChoiceStudy::of(&search.record).is_undecided() {
            break;
        }
        let mut runs = search.round(round, on_event);
        if has_moved(&runs) {
            on_event(&ChooseEvent::Repeats(round));
            search.record.repeated.push(round);
            runs = search.round(round, on_event);
            if has_moved(&runs) {
                search.record.unsteady.push(round);
            }
        }
        // Relaxed: set by the signal handler; orders nothing.
        if stop.load(Ordering::Relaxed) {
            // An incomplete round would favour the modes in it.
            break;
        }
        for (place, run) in runs {
            if let Some(mode) = search.record.modes.get_mut(place) {
                mode.rounds.push(run);
            }
        }
    }
    Ok(search.record)
}

struct Search<'a> {
    root: &'a Root,
    options: &'a ChooseOptions,
    stop: &'a AtomicBool,
    record: ChoiceRecord,
}

impl Search<'_> {
    fn measure(&self, scenario: Scenario) -> Result<PingpongRecord, PingpongError> {
        let options = ClientOptions {
            scenario,
            server: self.options.server.clone(),
            command_line: String::new(),
            percentile: 99.0,
            is_forced: self.options.is_forced,
            keeps_samples: false,
        };
        run_client(self.root, &options, self.stop, &|_| {})
    }

    /// Runs a mode for a moment. Returns why it is not available.
    fn check(&mut self, mode: Mode) -> Result<Option<String>, PingpongError> {
        let short = Scenario {
            time_ms_max: PROBE_MS,
            warm_up_ms: 0,
            iterations_min: PROBE_ITERATIONS_MIN.min(self.record.scenario.iterations_max),
            ..mode.applied_to(&self.record.scenario)
        };
        let record = match self.measure(short) {
            Ok(record) => record,
            Err(
                error @ (PingpongError::SetUp { .. }
                | PingpongError::Control { .. }
                | PingpongError::Unsound(_)),
            ) => return Ok(Some(sentence(&error))),
            Err(error) => return Err(error),
        };
        let reason = Self::why_not(mode, &record);
        if reason.is_none() {
            self.keep_facts(record);
        }
        Ok(reason)
    }

    fn why_not(mode: Mode, record: &PingpongRecord) -> Option<String> {
        if record.sizes.is_empty() {
            return Some(
                record.warnings.first().cloned().unwrap_or_else(|| "It measured nothing.".to_owned()),
            );
        }
        let has_no_effect =
            |one: &&Unsound| matches!(one, Unsound::NoQueueToPoll { .. } | Unsound::IrqNotSuspended { .. });
        if let Some(one) = record.unsound.iter().find(has_no_effect) {
            return Some(one.to_string());
        }
        let ends = [&record.client, &record.server];
        if mode.holds_idle && !ends.iter().all(|end| end.holds_idle) {
            let why = ends.iter().find_map(|end| end.warnings.first()).cloned();
            return Some(why.unwrap_or_else(|| "Idle states could not be held off.".to_owned()));
        }
        None
    }

    /// Keeps what all modes share, and the CPUs.
    fn keep_facts(&mut self, measured: PingpongRecord) {
        let is_shared = |one: &Unsound| !matches!(one, Unsound::IdleStates { .. });
        let record = &mut self.record;
        (record.scenario.client_cpu, record.scenario.server_cpu) = (measured.client.cpu, measured.server.cpu);
        record.unsound = measured.unsound.into_iter().filter(is_shared).collect();
        record.is_same_host = measured.is_same_host;
        record.control_missing = measured.control_missing;
        (record.client, record.server) = (measured.client, measured.server);
    }

    /// Runs every available mode once, forwards and backwards in turn.
    fn round(&mut self, round: u32, on_event: &dyn Fn(&ChooseEvent)) -> Vec<(usize, ModeRound)> {
        let mut runs = Vec::new();
        for place in CompareRecord::order(self.record.modes.len(), round) {
            let available = self.record.modes.get(place).filter(|mode| mode.unavailable.is_none());
            // Relaxed: set by the signal handler; orders nothing.
            let Some(mode) = available.map(|of| of.mode).filter(|_| !self.stop.load(Ordering::Relaxed))
            else {
                continue;
            };
            on_event(&ChooseEvent::Measures { round, mode });
            let warnings = match self.measure(mode.applied_to(&self.record.scenario)) {
                Ok(measured) => {
                    runs.extend(ModeRound::of(round, &measured).map(|run| (place, run)));
                    measured.warnings
                }
                Err(error) => vec![sentence(&error)],
            };
            for warning in warnings.into_iter().map(|warning| format!("In mode {mode}: {warning}")) {
                if !self.record.warnings.contains(&warning) {
                    self.record.warnings.push(warning);
                }
            }
        }
        runs
    }
}

fn has_moved(runs: &[(usize, ModeRound)]) -> bool {
    let medians = runs.iter().filter_map(|(_, run)| run.p50_ns).map(|ns| ns as f64);
    control_moved(runs.iter().flat_map(|(_, run)| &run.controls), medians).is_some()
}

/// An error without its hint, as a sentence.
fn sentence(error: &PingpongError) -> String {
    format!("{}.", capital(&without_hint(error)))
}
