//! Starts other programs on chosen CPUs, and ends them.

use super::{super::WorkloadError, Task};
use crate::workload::team::scheduling_of;
use lowlat_host_run::{
    affinity, pause,
    programs::{self, silence},
    scheduling::set_scheduling,
};
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal};
use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time between two checks of a program.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Time in which a program ends after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// A program in a separate process group. It is ended when this is dropped, and by the kernel when lowlat ends.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Duration of its task.
    expected: Duration,
    is_over: bool,
}

/// Starts a command under a task's setting, with its outputs in pipes.
///
/// # Errors
/// [`WorkloadError`] if it cannot be started or placed.
pub fn start(command: &mut Command, task: &Task) -> Result<Running, WorkloadError> {
    let scheduling = scheduling_of(task.policy);
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        scheduling.as_ref().map_or(Ok(()), |scheduling| set_scheduling(std::process::id(), scheduling))
    };
    // SAFETY: between fork and exec, it only makes system calls on numbers: no allocation, no lock.
    let command = unsafe { command.pre_exec(prepare) };
    let silence = silence().map_err(failed)?;
    command.process_group(0).stdin(silence).stdout(Stdio::piped()).stderr(Stdio::piped());
    // The program and what it starts inherit the mask of this thread.
    let before = affinity::current().map_err(failed)?;
    if let Some(cpus) = &task.cpus {
        affinity::pin_to(cpus).map_err(failed)?;
    }
    let child = command.spawn();
    if task.cpus.is_some() {
        // Fails if those CPUs went offline; the kernel has then chosen others.
        let _ = affinity::pin_to(&before);
    }
    let name = command.get_program().to_string_lossy().into_owned();
    let child = child.map_err(|error| WorkloadError(format!("cannot start {name}: {error}")))?;
    Ok(Running { child, expected: Duration::from_secs(task.seconds.into()), is_over: false })
}

impl Running {
    /// True if it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.is_over = self.is_over || !matches!(self.child.try_wait(), Ok(None));
        self.is_over
    }

    /// Returns what it has written to standard error, once it has ended.
    pub fn errors(&mut self) -> String {
        programs::read_output(self.child.stderr.take())
    }

    /// Waits until it ends. Returns its outputs, or `None` if `stop` was raised.
    ///
    /// # Errors
    /// If it fails, or takes much longer than its task.
    pub fn finish(mut self, name: &str, stop: &AtomicBool) -> Result<Option<String>, WorkloadError> {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let deadline = Instant::now() + self.expected * 3 + PATIENCE;
        thread::scope(|scope| {
            let text = scope.spawn(|| programs::read_output(stdout));
            let errors = scope.spawn(|| programs::read_output(stderr));
            // Relaxed: set by the signal handler; orders nothing.
            while !self.has_ended() && !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
                pause::sleep(LOOK_EVERY, stop);
            }
            let is_late = !self.is_over;
            let status = self.end();
            let [text, errors] = [text, errors].map(|reading| reading.join().unwrap_or_default());
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if is_late {
                return Err(WorkloadError(format!("{name} did not end in time")));
            }
            if !status.is_some_and(|status| status.success()) {
                return Err(WorkloadError(format!("{name} failed{}", cause(&errors))));
            }
            Ok(Some(text + "\n" + &errors))
        })
    }

    /// Ends it, by SIGTERM first, so that it can remove what it made.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        let pid = Pid::from_child(&self.child);
        if !self.has_ended() {
            let _ = kill_process(pid, Signal::TERM);
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.has_ended() && Instant::now() < deadline {
            thread::sleep(LOOK_EVERY);
        }
        // Kills what is left in its process group, if anything.
        let _ = kill_process_group(pid, Signal::KILL);
        self.is_over = true;
        self.child.wait().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

#[allow(clippy::needless_pass_by_value, reason = "an argument of map_err")]
fn failed(error: impl ToString) -> WorkloadError {
    WorkloadError(error.to_string())
}

/// The last line of a program's errors, after a colon.
pub fn cause(errors: &str) -> String {
    programs::last_line(errors).map(|line| format!(": {line}")).unwrap_or_default()
}
