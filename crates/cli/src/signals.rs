//! Ctrl-C and its kin.

use anyhow::Context;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A flag that SIGINT, SIGTERM and SIGHUP raise. A second signal ends the process at once; a trace of ours in the kernel
/// is removed before, as is the folder of a pipeline, and reserved huge pages are given back.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let on_signal = move || {
        // Relaxed: a lone flag; the samplers' data reach us through their join.
        if raised.swap(true, Ordering::Relaxed) {
            for problem in lowlat_sys::tracefs::remove_own() {
                crate::output::talk(&format!("lowlat: {problem}"));
            }
            crate::commands::pipeline::huge_pages::give_back();
            lowlat_trade::run::remove_folder();
            std::process::exit(130);
        }
    };
    ctrlc::set_handler(on_signal).context("cannot catch Ctrl-C")?;
    Ok(stop)
}
