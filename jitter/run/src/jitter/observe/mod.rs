//! A run with observation: every interruption is matched with the kernel's trace, and streamed to disk.
//!
//! Sources of causes: a trace of each measured CPU; if unavailable, the kernel's counters of what ran there.

mod observer;
mod senders;
mod setup;
mod tap;
mod trace_clock;
mod trace_reader;

use super::{
    Companion, JitterError, JitterOptions, JitterProgress,
    counters::{CpuCounters, SmiCounts},
    raw::RawFiles,
    run::run,
};
use crate::clock;
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_jitter::{CauseSource, CpuCauses, JitterCauses, JitterCpu, JitterRecord, Warning};
use observer::Observer;
use setup::Halt;
pub use setup::{TraceSetup, filter_page_faults};
use std::{path::PathBuf, sync::atomic::AtomicBool};
pub use tap::{Live, sample};
pub use trace_clock::StampClock;

/// Observations to make besides the lengths of interruptions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Finds causes; a run that an interruption ends always does.
    pub causes: bool,
    /// Prefix of sysjitter's raw files, to which every interruption is written.
    pub raw: Option<PathBuf>,
    /// Saves the trace around the interruption that ends the run ([`JitterOptions::stop_on_ns`]).
    pub saves_trace: bool,
}

/// Measures like [`run`], and finds the causes.
///
/// A problem with finding causes never prevents the run: the record states the source of causes and why a
/// better one was unavailable, and its warnings list losses.
///
/// # Errors
/// [`JitterError`] if the run is impossible; nothing was measured then.
pub fn run_observed(
    root: &Root,
    options: &JitterOptions,
    observation: &Observation,
    stop: &AtomicBool,
    progress: &(dyn Fn(&JitterProgress) + Sync),
) -> Result<JitterRecord, JitterError> {
    options.check(root)?;
    let raw = observation.raw.as_ref().map(|prefix| RawFiles::create(prefix, &options.cpus)).transpose()?;
    let (record, raw) = if observation.causes || options.stop_on_ns.is_some() {
        run_with_causes(root, options, observation.saves_trace, stop, progress, raw)
    } else {
        let mut raw = raw;
        let companion = raw.as_mut().map(|raw| raw as &mut dyn Companion);
        (run(root, options, stop, progress, companion), raw)
    };
    let Some(raw) = raw else { return record };
    match record {
        Ok(mut record) => {
            let warnings = raw.convert(&record);
            record.warn(warnings);
            Ok(record)
        }
        Err(error) => {
            raw.discard();
            Err(error)
        }
    }
}

/// Result of a run, and its raw files, which must still be finished.
type Outcome = (Result<JitterRecord, JitterError>, Option<RawFiles>);

fn run_with_causes(
    root: &Root,
    options: &JitterOptions,
    saves_trace: bool,
    stop: &AtomicBool,
    progress: &(dyn Fn(&JitterProgress) + Sync),
    raw: Option<RawFiles>,
) -> Outcome {
    let (kind, _) = clock::choose(root);
    let mut notes = Vec::new();
    let (setup, reason) = match TraceSetup::make(root, options, kind, &mut notes) {
        Ok(setup) => (Some(setup), String::new()),
        Err(reason) if saves_trace => return (Err(JitterError::NothingTraced(reason)), raw),
        Err(reason) => (None, reason),
    };
    let cost = setup.as_ref().and_then(|setup| setup.cost);
    let senders_reason = setup.as_ref().map(|setup| setup.senders_reason.clone()).unwrap_or_default();
    let before = (CpuCounters::read(root, &options.cpus), SmiCounts::read(root, &options.cpus));
    let mut observer = Observer::new(root, options, raw, setup);
    observer.halt = Halt::of(options, stop);
    let record = run(root, options, stop, progress, Some(&mut observer));
    let Observer { raw, trace, halt, .. } = observer;
    let mut record = match record {
        Ok(record) => record,
        Err(error) => return (Err(error), raw),
    };
    let counters = before.0.until(&CpuCounters::read(root, &options.cpus), &options.cpus);
    let smi_after = SmiCounts::read(root, &options.cpus);
    notes.extend(counters.doubts.iter().cloned());
    let mut halted = halt.map(|halt| halt.finish(&record));
    let mut causes = if let Some(trace) = trace {
        trace.into_causes(&record, halted.as_mut().zip(Some(saves_trace)), &mut notes)
    } else {
        let bare = |of: &JitterCpu| CpuCauses { cpu: of.cpu, ..CpuCauses::default() };
        let cpus = record.cpus.iter().map(bare).collect();
        JitterCauses { source: CauseSource::Counters, cpus, ..JitterCauses::default() }
    };
    (causes.reason, causes.cost, causes.senders_reason) = (reason, cost, senders_reason);
    for cpu in &mut causes.cpus {
        cpu.counters = counters.of(cpu.cpu);
        cpu.smi_count = before.1.count_until(&smi_after, cpu.cpu);
        if matches!(cpu.smi_count, Reading::Known(count) if count > 0) {
            cpu.blame_firmware();
        }
        notes.extend(counters.contradictions(cpu.cpu, &cpu.totals));
        let measured = record.cpus.iter_mut().find(|of| of.cpu == cpu.cpu);
        if measured.zip(cpu.own_holds.as_ref()).and_then(|(of, own)| of.take_out(own)).is_none() {
            cpu.own_holds = None;
        }
    }
    notes.extend(held_back(&causes));
    record.stop = halted.map(|(_, stop)| stop);
    record.causes = Some(causes);
    record.warn(notes);
    (Ok(record), raw)
}

fn held_back(causes: &JitterCauses) -> Option<Warning> {
    let holds = || causes.cpus.iter().filter_map(|cpu| cpu.own_holds.as_ref());
    let (count, ns_total) = (holds().map(|of| of.count).sum(), holds().map(|of| of.ns_total).sum());
    (count > 0).then_some(Warning::HeldBack { count, ns_total })
}
