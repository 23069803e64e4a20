//! External programs that lowlat runs, mostly generators of boot loaders.

use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io::{self, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The exit code was 0.
    pub is_success: bool,
    pub stdout: Vec<u8>,
    /// Its stderr, with replacement characters.
    pub stderr: String,
}

/// Runs programs; tests replace it.
pub trait Programs: std::fmt::Debug {
    /// Runs a program found by its name in the usual directories, with the C locale and no input, and waits
    /// for it. A program that hangs is killed, and the error is `TimedOut`.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome>;

    /// As [`Programs::run`], with input on stdin. Implementations without it return `Unsupported`.
    fn run_with_input(&self, _program: &str, _arguments: &[&str], _input: &[u8]) -> io::Result<Outcome> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The programs of the running host.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemPrograms;

/// Directories of an administrator's programs. The caller's PATH is not trusted.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Programs for SystemPrograms {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        finish(command(program, arguments).stdin(lowlat_host_run::programs::silence()?), &[], LONGEST)
    }

    fn run_with_input(&self, program: &str, arguments: &[&str], input: &[u8]) -> io::Result<Outcome> {
        finish(command(program, arguments).stdin(Stdio::piped()), input, LONGEST)
    }
}

/// Time limit of a program. The slowest known, which builds an initial RAM disk for each kernel, takes
/// minutes.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// Interval between checks whether the program has ended.
const TURN: Duration = Duration::from_millis(10);

/// Waits until the program ends, or kills it and its children after `longest`.
fn finish(command: &mut Command, input: &[u8], longest: Duration) -> io::Result<Outcome> {
    // A separate process group, so that children of a shell script are killed with it.
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        // Separate threads, so that neither side waits for the other. A program that stops reading closes
        // the pipe, and its exit status decides.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let stdout = scope.spawn(move || read_all(stdout));
        let stderr = scope.spawn(move || read_all(stderr));
        let ended = wait(&mut child, longest);
        if ended.is_err() {
            let group = Pid::from_child(&child);
            let _ = kill_process_group(group, Signal::KILL);
            child.wait()?;
        }
        let (stdout, stderr) = (joined(stdout)?, joined(stderr)?);
        let status = ended?;
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        Ok(Outcome { is_success: status.success(), stdout, stderr })
    })
}

fn wait(child: &mut Child, longest: Duration) -> io::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() >= longest {
            let text = format!("killed after {} s", longest.as_secs_f64());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text));
        }
        thread::sleep(TURN);
    }
}

fn read_all(from: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.map_or(Ok(0), |mut from| from.read_to_end(&mut bytes))?;
    Ok(bytes)
}

fn joined(reader: thread::ScopedJoinHandle<'_, io::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
    reader.join().unwrap_or_else(|_| Err(io::Error::other("a thread that read its output panicked")))
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", PATH).env("LC_ALL", "C");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_of_any_size_is_passed_on() {
        let input = "x".repeat(1 << 20);
        let outcome = SystemPrograms.run_with_input("cat", &[], input.as_bytes()).unwrap();
        assert!(outcome.is_success && outcome.stdout == input.as_bytes());
        assert!(!SystemPrograms.run_with_input("false", &[], input.as_bytes()).unwrap().is_success);
        let error = SystemPrograms.run_with_input("no-such-program", &[], b"").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let mut command = command("sh", &["-c", "echo began; sleep 3600 & sleep 3600"]);
        let error = finish(command.stdin(Stdio::null()), &[], Duration::from_millis(200)).unwrap_err();
        // Reading has ended, so no process has the pipe open any more.
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("after 0.2 s"), "{error}");
    }
}
