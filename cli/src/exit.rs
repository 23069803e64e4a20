//! Exit codes.

use lowlat_settings::Claim;
use std::{fmt, process::ExitCode};

/// The exit codes of every subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, without findings.
    Clean,
    /// Done; there are findings, or the two sides differ.
    Findings,
    /// Not done: bad arguments, an unreadable root, a file that cannot be written.
    Error,
    /// Done; everything still missing takes effect after the reboot.
    Pending,
    /// Done without findings, but too little could be checked for a verdict.
    NotJudged,
    /// Interrupted by Ctrl-C; the measurement so far is kept.
    Interrupted,
    /// Exit code of the command that `lowlat run` started.
    Command(u8),
}

/// Interruption by Ctrl-C before there was anything to keep. Contains the activity that it interrupted.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted while {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl Exit {
    /// Returns the exit code of a measurement. An incomplete measurement is not a success.
    pub fn of_measurement(is_interrupted: bool, is_whole: bool) -> Self {
        match (is_interrupted, is_whole) {
            (true, _) => Self::Interrupted,
            (false, true) => Self::Clean,
            (false, false) => Self::NotJudged,
        }
    }

    /// Returns the exit code of a run that is sound or has findings.
    pub fn of_run(is_interrupted: bool, is_sound: bool) -> Self {
        match (is_interrupted, is_sound) {
            (true, _) => Self::Interrupted,
            (false, true) => Self::Clean,
            (false, false) => Self::Findings,
        }
    }
}

impl From<&anyhow::Error> for Exit {
    fn from(error: &anyhow::Error) -> Self {
        if error.is::<Interrupted>() { Self::Interrupted } else { Self::Error }
    }
}

impl From<Claim> for Exit {
    fn from(claim: Claim) -> Self {
        match claim {
            Claim::Clean => Self::Clean,
            Claim::Findings => Self::Findings,
            Claim::NotJudged => Self::NotJudged,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Error => 2,
            Exit::Pending => 3,
            Exit::NotJudged => 4,
            Exit::Interrupted => 130,
            Exit::Command(code) => code,
        }
        .into()
    }
}
