//! Surveys the latencies between cores.

use super::{BounceError, Rounds, bounce};
use lowlat_cache::c2c::{C2cRecord, Method, Missed, Sample, SurveyLimits, survey};
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use lowlat_host_run::Root;
use lowlat_jitter_run::clock::{ArchCounter, ClockError, TickScale, frequency_of};
use std::sync::atomic::{AtomicBool, Ordering};

/// Round trips of one try.
const ROUNDS: Rounds = Rounds { warm_up: 200, measured: 2_000 };
/// The same where one round passes many lines.
const ROUNDS_OF_CHAINS: Rounds = Rounds { warm_up: 20, measured: 200 };
/// Pairs that may fail before the survey gives up.
const FAILURES_MAX: usize = 16;

/// Measures latencies between CPUs until their groups are known. Ends early, with what it has, when `stop` is raised.
/// `on_pair` gets the number of tries so far.
///
/// # Errors
/// If the counter's frequency is unknown.
pub fn run(
    root: &Root,
    (cpus, topology): (&CpuSet, &Topology),
    method: Method,
    limits: SurveyLimits,
    stop: &AtomicBool,
    on_try: &mut dyn FnMut(u64),
) -> Result<C2cRecord, ClockError> {
    let scale = TickScale::new(frequency_of(ArchCounter::KIND, root)?.hz);
    let rounds = if matches!(method, Method::Read | Method::Invalidate) { ROUNDS_OF_CHAINS } else { ROUNDS };
    let mut failures: Vec<String> = Vec::new();
    let mut tries = 0;
    let mut is_stopped = false;
    let mut measure = |a: CpuId, b: CpuId| {
        // Relaxed: set by the signal handler; orders nothing.
        is_stopped |= stop.load(Ordering::Relaxed);
        if is_stopped {
            return Err(Missed::Stop);
        }
        tries += 1;
        on_try(tries);
        let error = match bounce(method, (a, b), rounds, scale) {
            Ok(samples) => return sample(samples).ok_or(Missed::Pair),
            Err(error) => error,
        };
        failures.push(error.to_string());
        match error {
            _ if failures.len() > FAILURES_MAX => Err(Missed::Stop),
            BounceError::Cpu { cpu, .. } => Err(Missed::Cpu(cpu)),
            BounceError::Slow { .. } => Err(Missed::Pair),
        }
    };
    let mut record = survey(cpus, topology, limits, &mut measure);
    record.method = method;
    if failures.len() > FAILURES_MAX {
        record.warnings.push("The survey ended early: too many pairs could not be measured.".to_owned());
    }
    record.warnings.extend(failures.into_iter().map(|error| format!("A pair is missing: {error}.")));
    if is_stopped {
        record.warnings.push("The survey was interrupted.".to_owned());
    }
    Ok(record)
}

/// Returns median and quartiles of samples.
fn sample(mut samples: Vec<f64>) -> Option<Sample> {
    samples.sort_by(f64::total_cmp);
    let at = |part: usize| samples.get(samples.len() * part / 4).copied();
    Some(Sample { median_ns: at(2)?, low_ns: at(1)?, high_ns: at(3)? })
}
