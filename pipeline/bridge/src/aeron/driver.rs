//! A media driver in this process.

use super::{refused, text};
use lowlat_node::Refusal;
use rusteron_media_driver::{AeronCError, AeronDriver, AeronDriverContext};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Runs a media driver in this directory, which it creates and removes, until `is_over` is set. It honours
/// AERON_* environment variables (threads, buffers, affinity).
pub fn drive(dir: &Path, is_over: &AtomicBool, started: impl FnOnce()) -> Result<(), Refusal> {
    run(dir, is_over, started).map_err(|source| {
        let doing = format!("run a media driver in {}", dir.display());
        refused(
            &doing,
            source,
            "use a directory in /dev/shm without another driver; that of a killed driver is free after 10 s",
        )
    })
}

fn run(dir: &Path, is_over: &AtomicBool, started: impl FnOnce()) -> Result<(), AeronCError> {
    let context = AeronDriverContext::new()?;
    context.set_dir(&text(&dir.display().to_string()))?;
    context.set_dir_delete_on_start(false)?;
    context.set_dir_delete_on_shutdown(true)?;
    context.apply_cgroup_cpuset_affinity()?;
    context.set_thread_affinity_on_start();
    let driver = AeronDriver::new(&context).map_err(AeronCError::capture_errmsg)?;
    driver.start(true).map_err(AeronCError::capture_errmsg)?;
    started();
    // Relaxed: the word does not order other memory.
    while !is_over.load(Ordering::Relaxed) {
        driver.main_idle_strategy(driver.main_do_work().map_err(AeronCError::capture_errmsg)?);
    }
    Ok(())
}
