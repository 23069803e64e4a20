//! Pauses that end when the command is stopped.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Longest time until a pause notices that it is to end.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// Sleeps, or returns soon after `stop` is raised.
pub fn sleep(time: Duration, stop: &AtomicBool) {
    let end = Instant::now() + time;
    // Relaxed: set by the signal handler; orders nothing.
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(STOP_EVERY));
    }
}
