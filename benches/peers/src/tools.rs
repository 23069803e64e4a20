//! Finding and running the programs.

use anyhow::{Context, bail};
use std::{
    path::PathBuf,
    process::{Command, Output},
};

/// Finds a program on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Returns the lowlat next to this program, or else the one on PATH.
pub fn lowlat() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("cannot tell where this program lies")?;
    let beside = own.with_file_name("lowlat");
    if beside.is_file() {
        return Ok(beside);
    }
    on_path("lowlat").context("lowlat is not built: run cargo build --release -p lowlat first")
}

/// Runs a program to its end. Exit codes that mean something to the caller are returned with the output.
pub fn run(program: &std::path::Path, arguments: &[String], fine: &[i32]) -> anyhow::Result<Output> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let code = output.status.code();
    if code.is_some_and(|code| fine.contains(&code)) {
        return Ok(output);
    }
    bail!(
        "{} {} ended with {}: {}",
        program.display(),
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )
}
