//! Measurement, from the arguments to the document.

use super::{arguments::JitterArgs, live::Live, ready};
use crate::{
    choose::{self, Chosen},
    documents::Run,
    signals,
};
use lowlat_jitter::JitterMeasurement;
use lowlat_jitter_run::jitter::{self, JitterError, JitterOptions, Observation, RealTime, RealTimePolicy};
use lowlat_results::ResultDocument;
use std::sync::atomic::Ordering;

/// Reads the host, waits for quiet if requested, and measures.
pub fn run(arguments: &JitterArgs) -> anyhow::Result<ResultDocument> {
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(JitterMeasurement::KIND, labels, || arguments.host.read())?;
    let host = &run.host;
    if !host.root.is_live() {
        return Err(JitterError::NotLive { root: host.root.label().to_owned() }.into());
    }
    let chosen = choose::isolated_first(arguments.cpus.as_ref(), host.cpus_of_role(), &host.snapshot)?;
    let options = options(arguments, &chosen);
    // Before the wait for quiet: there is no point in waiting for an offline CPU.
    options.check(&host.root)?;
    choose::step_aside(&chosen.cpus, &host.snapshot);
    let stop = signals::stop_flag()?;
    let readiness = ready::look(&arguments.readiness, &run, &chosen, &stop)?;
    let observation = Observation {
        causes: !arguments.no_causes,
        raw: arguments.outputs.raw.clone(),
        saves_trace: arguments.outputs.save_trace.is_some(),
    };
    run.progress.say("calibrating");
    run.progress.stand_still();
    run.start();
    let live = Live::new(&run.progress);
    let record = jitter::run_observed(&run.host.root, &options, &observation, &stop, &|now| live.show(now))?;
    if record.was_stopped() {
        // Relaxed: pairs with the load in `Run::document`, in this thread. The run ended itself; no signal interrupted it.
        stop.store(false, Ordering::Relaxed);
    }
    let jitter = JitterMeasurement::from(record);
    run.warnings.extend(chosen.note);
    let document = run.document(vec![jitter.into()], &stop);
    Ok(ResultDocument { readiness, ..document })
}

fn options(arguments: &JitterArgs, chosen: &Chosen) -> JitterOptions {
    let real_time = match (arguments.real_time.fifo, arguments.real_time.rr) {
        (Some(priority), _) => Some((RealTimePolicy::Fifo, priority)),
        (None, Some(priority)) => Some((RealTimePolicy::RoundRobin, priority)),
        (None, None) => None,
    };
    let real_time = real_time.map(|(policy, priority)| RealTime { policy, priority });
    JitterOptions {
        threshold_ns: arguments.threshold,
        wake_every: arguments.wake_every,
        stop_on_ns: arguments.stop_on,
        real_time,
        ..JitterOptions::new(chosen.cpus.clone(), arguments.duration)
    }
}
