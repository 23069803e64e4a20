//! A lowlat that runs while a test goes on.

use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;

/// It is ended with the test, with the processes that it started; none once the test has waited for its end.
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
