//! Commands that this one runs.

use anyhow::{Context as _, bail};
use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::{Command, Stdio},
};

/// Prints the command, runs it, and fails if it fails.
pub fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = line(command);
    eprintln!("+ {line}");
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Runs the command and returns its standard output.
pub fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = line(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot run {line}"))?;
    if !output.status.success() {
        bail!("{line}: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("{line}: the output is not UTF-8"))
}

/// PATH with a folder before all others.
pub fn path_before(folder: PathBuf) -> anyhow::Result<OsString> {
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths([folder].into_iter().chain(env::split_paths(&others)))?)
}

/// The cargo that runs this program, so that both use one toolchain.
pub fn cargo() -> Command {
    builder(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program that builds crates.
pub fn builder(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    // Variables that `cargo run` sets for this package. Some build scripts read them, and their crates would be built
    // again.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&*name);
        }
    }
    command
}

fn line(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or(&program);
    let arguments = command.get_args().map(|argument| argument.to_string_lossy());
    std::iter::once(name.into()).chain(arguments).collect::<Vec<_>>().join(" ")
}
