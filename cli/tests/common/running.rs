//! A lowlat process that runs beside a test.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;

/// The process, which ends with the test, as do the processes that it started; `None` once the test has waited for it.
pub struct Running(pub Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It ends its processes.
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}
