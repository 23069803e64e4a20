//! `cargo xtask dist --wheel`: the Python module. It is built apart from the binary, because Python loads it into a process
//! that uses glibc.

use crate::run::{path_before, run};
use anyhow::Context as _;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Python's programs that make the wheel, with their versions. Zig links against the symbols of an older glibc than this
/// system's.
const TOOLS: &[&str] = &["maturin==1.16.0", "ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
/// The systems on which it runs: glibc 2.28 and later, as in Debian 10 and RHEL 8.
const SYSTEMS: &str = "manylinux_2_28";

/// The folder of the programs of [`TOOLS`], which are installed if these versions are missing.
pub fn tools(root: &Path) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/tools").join(TOOLS.join("-").replace("==", "-"));
    let programs = folder.join("bin");
    if !programs.join("maturin").exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))
            .context("cannot make an environment for Python\nhint: install python3-venv (Debian, Ubuntu)")?;
        run(Command::new(programs.join("pip")).args(["install", "--quiet"]).args(TOOLS))?;
    }
    Ok(programs)
}

/// Makes the wheel in `dist`.
pub fn make(root: &Path, dist: &Path) -> anyhow::Result<()> {
    let programs = tools(root)?;
    // maturin checks the symbols of the module, and fails if one is of a later glibc.
    run(Command::new(programs.join("maturin"))
        .current_dir(root.join("pipeline/python"))
        .env("PATH", path_before(programs)?)
        .args(["build", "--release", "--locked", "--strip", "--zig", "--compatibility", SYSTEMS, "--out"])
        .arg(dist)
        // It reads recordings at the full rate. The static binary has less room.
        .args(["--config", "profile.release.package.lowlat-journal.opt-level=3"]))
}
