//! `cargo xtask dist`: the binary that users get. It is linked statically with musl, so it runs on any Linux of its processor.

use crate::{
    library, packages,
    run::{cargo, output, run},
    wheel,
    workspace::Workspace,
};
use anyhow::{Context as _, bail};
use std::{
    env::{self, consts::ARCH},
    fs,
    path::Path,
    process::Command,
};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Also make the packages for Debian and RPM systems, and the list of what the binary was built from
    #[arg(long)]
    packages: bool,
    /// Make the wheel of the Python module, and nothing else
    #[arg(long, conflicts_with = "packages")]
    wheel: bool,
    /// Make the packages of the library for C and C++, and nothing else
    #[arg(long, conflicts_with_all = ["packages", "wheel"])]
    library: bool,
}

pub fn dist(options: &Options) -> anyhow::Result<()> {
    let workspace = Workspace::read()?;
    let dist = workspace.target_directory.join("dist");
    fs::create_dir_all(&dist).with_context(|| format!("cannot create {}", dist.display()))?;
    if options.wheel {
        return wheel::make(&workspace.root, &dist);
    }
    if options.library {
        return library::make(&workspace.root, &dist);
    }
    let target = format!("{ARCH}-unknown-linux-musl");
    // It compiles what is written in C: SQLite and the cryptography.
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        bail!(
            "cannot build for {target}: musl-gcc is missing\nhint: install musl-tools (Debian, Ubuntu) or musl-gcc (Fedora)"
        );
    }
    add_standard_library(&target)?;
    let mut build = cargo();
    if options.packages {
        // It records the dependencies in the binary, for scanners of vulnerabilities.
        let auditable = packages::path_with(&workspace.root, packages::AUDITABLE)?;
        build.env("PATH", auditable).arg("auditable");
    }
    build.args(["build", "--profile", "dist", "--locked", "-p", "lowlat", "--target", &target]);
    for (what, with) in settings(&workspace.root, &target)? {
        build.arg("--config").arg(format!("{what}={with}"));
    }
    // Cargo would ignore the flags of `settings`.
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        build.env_remove(name);
    }
    run(&mut build)?;

    // They contain another binary.
    packages::remove(&dist)?;
    let linked = workspace.target_directory.join(&target).join("dist/lowlat");
    split(&linked, &dist)?;
    let binary = dist.join("lowlat");
    let bytes = fs::metadata(&binary).with_context(|| format!("cannot read {}", binary.display()))?.len();
    println!(
        "{} ({:.1} MB); debug information in lowlat.debug beside it",
        binary.display(),
        bytes as f64 / 1e6
    );
    if options.packages { packages::make(&workspace.root, &dist) } else { Ok(()) }
}

/// Settings with which the binary is small and does not name the folders of this machine.
fn settings(root: &Path, target: &str) -> anyhow::Result<[(String, String); 2]> {
    let home = env::var_os("CARGO_HOME")
        .map_or_else(|| Path::new(&env::var_os("HOME").unwrap_or_default()).join(".cargo"), Into::into);
    let (root, home) = (root.display(), home.display());
    let mut of_rust =
        vec![format!("--remap-path-prefix={root}=/lowlat"), format!("--remap-path-prefix={home}=/cargo")];
    of_rust.extend(folding()?);
    let c_flags = format!("-ffile-prefix-map={root}=/lowlat -ffile-prefix-map={home}=/cargo");
    let name = format!("CFLAGS_{}", target.replace('-', "_"));
    Ok([
        (format!("target.{target}.rustflags"), serde_json::to_string(&of_rust)?),
        (format!("env.{name}"), serde_json::to_string(&c_flags)?),
    ])
}

/// Flags with which rustup's own linker keeps one copy of functions with the same code: 0.2 MB less. None without it.
fn folding() -> anyhow::Result<Vec<String>> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let lld = Path::new(libraries.trim()).with_file_name("bin").join("gcc-ld");
    if !lld.join("ld.lld").exists() {
        return Ok(Vec::new());
    }
    Ok(vec![
        format!("-Clink-arg=-B{}", lld.display()),
        "-Clink-arg=-fuse-ld=lld".to_owned(),
        "-Clink-arg=-Wl,--icf=all".to_owned(),
        // What a wake of the pipeline executes stands together, and what is cold apart.
        "-Clink-arg=-Wl,-z,keep-text-section-prefix".to_owned(),
    ])
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
