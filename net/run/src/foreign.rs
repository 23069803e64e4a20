//! Runs a foreign program to its end.

use lowlat_host_run::programs::{OUTPUT_BYTES_MAX, read_output};
use lowlat_net::tools::BYTES_MAX;
use std::{
    io,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

// What is kept of an output can be parsed.
const _: () = assert!(OUTPUT_BYTES_MAX <= BYTES_MAX as u64);

/// Time between two checks of the program.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Output of a foreign program.
#[derive(Debug, Default)]
pub struct Printed {
    /// Text written to standard output.
    pub text: String,
    /// Text written to standard error.
    pub errors: String,
}

/// Runs a command, and ends it when `stop` is raised.
///
/// # Errors
/// The system's error, if the program cannot be started or waited for.
pub fn run(command: &[String], stop: &AtomicBool) -> io::Result<Printed> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let started = Command::new(program)
        .args(arguments)
        .stdin(lowlat_host_run::programs::silence()?)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut running = Running(started);
    let (stdout, stderr) = (running.0.stdout.take(), running.0.stderr.take());
    thread::scope(|scope| {
        let text = scope.spawn(|| read_output(stdout));
        let errors = scope.spawn(|| read_output(stderr));
        let ended = running.wait(stop);
        let [text, errors] = [text, errors].map(|reading| reading.join().unwrap_or_default());
        ended.map(|()| Printed { text, errors })
    })
}

/// A program that ends with this.
struct Running(Child);

impl Running {
    fn wait(&mut self, stop: &AtomicBool) -> io::Result<()> {
        while self.0.try_wait()?.is_none() {
            // Relaxed: set by the signal handler; orders nothing.
            if stop.load(Ordering::Relaxed) {
                self.0.kill()?;
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<String> {
        ["sh", "-c", script].map(str::to_owned).to_vec()
    }

    #[test]
    fn both_streams_are_read_to_the_end() {
        let printed =
            run(&shell("echo out; echo err >&2; head -c 300000 /dev/zero"), &AtomicBool::new(false)).unwrap();
        assert!(
            printed.text.starts_with("out\n") && printed.text.len() == 300_004 && printed.errors == "err\n"
        );
        assert!(run(&["/nowhere/x".to_owned()], &AtomicBool::new(false)).is_err());
        assert!(run(&[], &AtomicBool::new(false)).is_err());
    }

    #[test]
    fn a_stopped_program_ends() {
        let printed = run(&["sleep".to_owned(), "600".to_owned()], &AtomicBool::new(true)).unwrap();
        assert_eq!(printed.text, "");
    }
}
