//! `cargo xtask dist --packages`: packages of the static binary, and the list of what it was built from (SBOM).

use crate::run::{cargo, output, path_before, run};
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A program that makes packages, and its version.
type Tool = (&'static str, &'static str);
pub const AUDITABLE: Tool = ("cargo-auditable", "0.7.7");
const COMPONENTS: Tool = ("auditable2cdx", "0.1.0");
const DEB: Tool = ("cargo-deb", "3.8.0");
const RPM: Tool = ("cargo-generate-rpm", "0.21.1");
const TOOLS_FOLDER: &str = "target/tools";

/// Makes all packages of the binary in `dist`, beside it.
pub fn make(root: &Path, dist: &Path) -> anyhow::Result<()> {
    if dist != root.join("target/dist") {
        bail!(
            "cannot make packages in {}: they take their files from target/dist\nhint: unset CARGO_TARGET_DIR",
            dist.display()
        );
    }
    texts(dist)?;
    // The commit's time in place of the build's: equal trees give equal packages.
    let time = output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))?;
    let packager = |tool: Tool| -> anyhow::Result<Command> {
        let path = path_with(tool)?;
        let mut command = cargo();
        command.current_dir(root).env("PATH", path).env("SOURCE_DATE_EPOCH", time.trim());
        command.arg(tool.0.trim_start_matches("cargo-"));
        Ok(command)
    };
    run(packager(DEB)?.args(["--package", "lowlat", "--no-build", "--no-strip", "--output"]).arg(dist))?;
    // Older systems cannot unpack the default, zstd.
    let arguments = ["--package", "crates/cli", "--payload-compress", "gzip", "--output"];
    run(packager(RPM)?.args(arguments).arg(dist))?;
    components(dist)
}

/// PATH with the tool, which is installed if it is missing.
pub fn path_with((name, version): Tool) -> anyhow::Result<OsString> {
    let folder = PathBuf::from(TOOLS_FOLDER);
    if !folder.join("bin").join(name).exists() {
        run(cargo().args([
            "install",
            &format!("{name}@{version}"),
            "--locked",
            "--debug",
            "--root",
            TOOLS_FOLDER,
        ]))?;
    }
    path_before(fs::canonicalize(folder.join("bin")).context("cannot find the installed tools")?)
}

/// Man pages and completions, as the binary itself prints them.
fn texts(dist: &Path) -> anyhow::Result<()> {
    let binary = dist.join("lowlat");
    let (man, completions) = (dist.join("man"), dist.join("completions"));
    for folder in [&man, &completions] {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    run(Command::new(&binary).args(["man", "--dir"]).arg(&man))?;
    for (shell, name) in [("bash", "lowlat.bash"), ("zsh", "_lowlat"), ("fish", "lowlat.fish")] {
        let path = completions.join(name);
        let text = output(Command::new(&binary).args(["completions", shell]))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Writes the list of components that the binary records.
fn components(dist: &Path) -> anyhow::Result<()> {
    let path = dist.join("lowlat.cdx.json");
    let program = COMPONENTS.0;
    let text = output(Command::new(program).env("PATH", path_with(COMPONENTS)?).arg(dist.join("lowlat")))?;
    let list: Value =
        serde_json::from_str(&text).context("cannot read the output of auditable2cdx: not JSON")?;
    let count = list["components"].as_array().map_or(0, Vec::len);
    if count == 0 {
        bail!("cannot write {}: the binary records no component", path.display());
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}: {count} components", path.display());
    Ok(())
}
