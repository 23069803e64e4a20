//! `cargo xtask dist`: the binary that users get. It is linked statically with musl, so it runs on any Linux of its processor.

use crate::{
    run::{cargo, output, run},
    workspace::Workspace,
};
use anyhow::{Context as _, bail};
use std::{env::consts::ARCH, fs, path::Path, process::Command};

pub fn dist() -> anyhow::Result<()> {
    let target = format!("{ARCH}-unknown-linux-musl");
    // It compiles what is written in C: SQLite and the cryptography.
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        bail!(
            "cannot build for {target}: musl-gcc is missing\nhint: install musl-tools (Debian, Ubuntu) or musl-gcc (Fedora)"
        );
    }
    add_standard_library(&target)?;
    run(cargo().args(["build", "--release", "--locked", "-p", "lowlat", "--target", &target]))?;

    let folder = Workspace::read()?.target_directory;
    let built = folder.join(&target).join("release/lowlat");
    let dist = folder.join("dist");
    fs::create_dir_all(&dist).with_context(|| format!("cannot create {}", dist.display()))?;
    split(&built, &dist)?;
    let binary = dist.join("lowlat");
    let bytes = fs::metadata(&binary).with_context(|| format!("cannot read {}", binary.display()))?.len();
    println!(
        "{} ({:.1} MB); debug information in lowlat.debug beside it",
        binary.display(),
        bytes as f64 / 1e6
    );
    Ok(())
}

fn add_standard_library(target: &str) -> anyhow::Result<()> {
    let folder = output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(folder.trim()).exists() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", target])).context(format!(
        "cannot install the standard library for {target}\nhint: without rustup, install it as the distribution provides it"
    ))
}

/// Copies the binary without its debug information, which goes into a file that debuggers, perf and panics find.
fn split(built: &Path, dist: &Path) -> anyhow::Result<()> {
    let objcopy = || {
        let mut command = Command::new("objcopy");
        command.current_dir(dist);
        command
    };
    run(objcopy().arg("--only-keep-debug").arg(built).arg("lowlat.debug"))?;
    run(objcopy().args(["--strip-all", "--add-gnu-debuglink=lowlat.debug"]).arg(built).arg("lowlat"))
}
