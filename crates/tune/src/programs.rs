//! Other people's programs that lowlat calls: boot loaders' generators, mostly.

use std::{
    io::{self, Write},
    process::{Command, Output, Stdio},
};

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it ended with 0.
    pub is_success: bool,
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr, with replacement characters.
    pub stderr: String,
}

/// Runs programs; a test has its own.
pub trait Programs: std::fmt::Debug {
    /// Runs a program found by its name in the usual directories, with the C locale and no input, and waits for it.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome>;

    /// As [`Programs::run`], with something to read on stdin. Who runs no such programs says so with `Unsupported`.
    fn run_with_input(&self, _program: &str, _arguments: &[&str], _input: &[u8]) -> io::Result<Outcome> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The programs of the running host.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemPrograms;

/// Where programs of an administrator are. The caller's own path may lead anywhere.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Programs for SystemPrograms {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        command(program, arguments).stdin(Stdio::null()).output().map(outcome)
    }

    fn run_with_input(&self, program: &str, arguments: &[&str], input: &[u8]) -> io::Result<Outcome> {
        let mut command = command(program, arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            // A program that answers before it has read everything must not wait for who writes, nor the reverse. One
            // that reads no further closes the pipe; its status tells what it made of it.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output().map(outcome)
        })
    }
}

fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", PATH).env("LC_ALL", "C");
    command
}

fn outcome(output: Output) -> Outcome {
    Outcome {
        is_success: output.status.success(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
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
}
