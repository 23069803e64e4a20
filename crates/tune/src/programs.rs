//! Other people's programs that lowlat calls: boot loaders' generators, mostly.

use std::{io, process::Command};

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
}

/// The programs of the running host.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemPrograms;

/// Where programs of an administrator are. The caller's own path may lead anywhere.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Programs for SystemPrograms {
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<Outcome> {
        let output = Command::new(program)
            .args(arguments)
            .env("PATH", PATH)
            .env("LC_ALL", "C")
            .stdin(std::process::Stdio::null())
            .output()?;
        Ok(Outcome {
            is_success: output.status.success(),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
