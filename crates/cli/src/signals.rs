//! Handling of Ctrl-C and other termination signals.

use anyhow::Context;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Returns a flag that SIGINT, SIGTERM and SIGHUP raise. A second signal ends the process at once, after it has removed
/// lowlat's trace in the kernel and a pipeline's folder, released reserved huge pages and restored the terminal.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let on_signal = move || {
        // Relaxed: the flag orders nothing; the samplers' data arrive through their join.
        if raised.swap(true, Ordering::Relaxed) {
            for problem in lowlat_sys::tracefs::remove_own() {
                crate::output::talk(&format!("lowlat: {problem}"));
            }
            crate::commands::pipeline::huge_pages::give_back();
            lowlat_trade::run::remove_folder();
            crate::commands::watch::restore_terminal();
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(on_signal).context("cannot catch Ctrl-C")?;
    Ok(stop)
}
