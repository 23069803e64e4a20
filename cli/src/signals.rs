//! Handling of Ctrl-C and other termination signals.

use anyhow::Context;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Interval at which threads that have not ended since a signal are given other CPUs.
const RELEASE_EVERY: Duration = Duration::from_secs(1);

/// Signals within this time are one request: timeout(1) signals the program and then its group.
const TOGETHER: Duration = Duration::from_millis(100);

/// Lets threads end that are pinned to CPUs on which real-time threads leave them no time.
fn release() {
    lowlat_host_run::scheduling::release_threads("");
}

/// Returns a flag that SIGINT, SIGTERM and SIGHUP raise. A second signal, after [`TOGETHER`], ends the process at once,
/// after it has removed lowlat's trace in the kernel and a pipeline's folder, released reserved huge pages and restored the
/// terminal.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let mut first: Option<Instant> = None;
    let on_signal = move || {
        if first.is_some_and(|at| at.elapsed() < TOGETHER) {
            return;
        }
        // Relaxed: the flag orders nothing; the samplers' data arrive through their join.
        raised.store(true, Ordering::Relaxed);
        if first.replace(Instant::now()).is_some() {
            for problem in lowlat_jitter_run::tracefs::remove_own() {
                crate::output::talk(&format!("lowlat: {problem}"));
            }
            crate::commands::pipeline::huge_pages::give_back();
            lowlat_trade::run::remove_folder();
            crate::commands::watch::restore_terminal();
            release();
            std::process::exit(130);
        }
        // If no thread is left to start it, the second signal helps.
        let _ = thread::Builder::new().name("lowlat-release".into()).spawn(|| {
            loop {
                thread::sleep(RELEASE_EVERY);
                release();
            }
        });
    };
    ctrlc::set_handler(on_signal).context("cannot catch Ctrl-C")?;
    Ok(stop)
}
