//! Measurement, from the arguments to the document.

use super::{arguments::JitterArgs, ready};
use crate::{
    choose::{self, Chosen},
    documents::Run,
    output,
    progress::Progress,
    signals,
};
use lowlat_jitter::JitterMeasurement;
use lowlat_jitter_report::{LiveCpu, LiveView, live_lines};
use lowlat_jitter_run::jitter::{self, JitterOptions, JitterProgress, Observation, RealTime, RealTimePolicy};
use lowlat_results::ResultDocument;
use std::{sync::atomic::Ordering, time::Duration};

/// Reads the host, waits for quiet if requested, and measures.
pub fn run(arguments: &JitterArgs) -> anyhow::Result<ResultDocument> {
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(JitterMeasurement::KIND, labels, || arguments.role.read())?;
    let host = &run.host;
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
    let size = output::stderr_size();
    let record = jitter::run_observed(&run.host.root, &options, &observation, &stop, &|now| {
        show(&run.progress, size, now);
    })?;
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
    let of = |policy, priority: Option<u8>| priority.map(|priority| RealTime { policy, priority });
    let real_time = of(RealTimePolicy::Fifo, arguments.real_time.fifo)
        .or_else(|| of(RealTimePolicy::RoundRobin, arguments.real_time.rr));
    JitterOptions {
        threshold_ns: arguments.threshold,
        wake_every: arguments.wake_every,
        stop_on_ns: arguments.stop_on,
        real_time,
        ..JitterOptions::new(chosen.cpus.clone(), arguments.duration)
    }
}

/// Shows how far the run is, on a terminal of these columns and rows; silent if stderr is none.
fn show(progress: &Progress, (width, height): (usize, usize), now: &JitterProgress) {
    if progress.is_hidden() {
        return;
    }
    let cpus = now.cpus.iter().map(|cpu| LiveCpu {
        cpu: cpu.cpu,
        count: cpu.interruption_count,
        ns_total: cpu.interruption_ns_total,
        ns_max: cpu.interruption_ns_max,
    });
    let cpus: Vec<LiveCpu> = cpus.collect();
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (elapsed_ns, duration_ns) = (ns(now.elapsed), ns(now.duration));
    progress.say(live_lines(&LiveView { cpus: &cpus, elapsed_ns, duration_ns, width, height }).join("\n"));
}
