//! Deaths at chosen steps.

use std::cell::Cell;

thread_local! {
    static STEPS_LEFT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Panic payload of a dying process.
pub struct Died;

/// One step of a process: a store that outlives it, or a published record.
pub fn step() {
    match STEPS_LEFT.get() {
        Some(0) => {
            STEPS_LEFT.set(None);
            std::panic::resume_unwind(Box::new(Died));
        }
        Some(left) => STEPS_LEFT.set(Some(left - 1)),
        None => {}
    }
}

/// Runs a process that dies after this many steps; returns false if it died.
pub fn after(steps: u64, process: impl FnOnce()) -> bool {
    STEPS_LEFT.set(Some(steps));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(process));
    STEPS_LEFT.set(None);
    ended.is_ok()
}
