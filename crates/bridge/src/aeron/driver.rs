//! The media driver in this process.

use super::{AeronError, text};
use rusteron_media_driver::{AeronCError, AeronDriver, AeronDriverContext};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Runs a media driver on this folder, which it makes and takes away, until `is_over` is set. What AERON_* variables of
/// the environment say counts (threads, buffers, affinity).
pub fn drive(dir: &Path, is_over: &AtomicBool, started: impl FnOnce()) -> Result<(), AeronError> {
    run(dir, is_over, started).map_err(|source| {
        let doing = format!("run a media driver on {}", dir.display());
        AeronError::new(doing, source, "take a folder in /dev/shm that no other driver has; that of one that was killed is free after 10 s")
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
    // Relaxed: the word says nothing of other memory.
    while !is_over.load(Ordering::Relaxed) {
        driver.main_idle_strategy(driver.main_do_work().map_err(AeronCError::capture_errmsg)?);
    }
    Ok(())
}
