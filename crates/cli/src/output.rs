//! Where words go: results to stdout, talk to stderr; and what the exit codes mean.

use anyhow::Context;
use serde::Serialize;
use std::{
    fmt,
    io::{self, Write},
    process::ExitCode,
};

/// The exit codes of every subcommand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, nothing to complain of.
    Clean,
    /// Done; there are findings, or the two sides differ.
    Findings,
    /// Not done: bad arguments, an unreadable root, a file that cannot be written.
    Error,
    /// Done; what is missing comes with the reboot.
    Pending,
    /// Cut short by Ctrl-C; what was measured is kept.
    Interrupted,
}

/// Cut short by Ctrl-C before there was anything to keep. Holds what was under way.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted while {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

impl From<&anyhow::Error> for Exit {
    fn from(error: &anyhow::Error) -> Self {
        if error.is::<Interrupted>() { Self::Interrupted } else { Self::Error }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Error => 2,
            Exit::Pending => 3,
            Exit::Interrupted => 130,
        }
        .into()
    }
}

/// Prints a result on stdout; colours go only to a terminal. A reader that went away is no error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = anstream::stdout().lock();
    let ended = if text.ends_with('\n') { "" } else { "\n" };
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.write_all(ended.as_bytes()))
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints a result as JSON on stdout.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string_pretty(value).context("cannot write the result as JSON")?)
}

/// Says something on stderr. When even that fails there is nobody left to tell.
pub fn talk(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Columns of the terminal on stdout; 100 when it is none. Bounded, so that tables stay readable.
pub fn width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { 100 } else { columns.clamp(60, 160) }
}
