//! `cargo xtask dist --packages`: packages of the static binary, and the list of what it was built from (SBOM).

use crate::run::{cargo, output, path_before, run};
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::{ffi::OsString, fs, path::Path, process::Command};

/// A program that makes packages, and its version.
type Tool = (&'static str, &'static str);
pub const AUDITABLE: Tool = ("cargo-auditable", "0.7.7");
const COMPONENTS: Tool = ("auditable2cdx", "0.1.0");
const DEB: Tool = ("cargo-deb", "3.8.0");
const RPM: Tool = ("cargo-generate-rpm", "0.21.1");
/// The list of components, beside the binary.
const LIST: &str = "lowlat.cdx.json";

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
        let path = path_with(root, tool)?;
        let mut command = cargo();
        command.current_dir(root).env("PATH", path).env("SOURCE_DATE_EPOCH", time.trim());
        command.arg(tool.0.trim_start_matches("cargo-"));
        Ok(command)
    };
    run(packager(DEB)?.args(["--package", "lowlat", "--no-build", "--no-strip", "--output"]).arg(dist))?;
    // Older systems cannot unpack the default, zstd.
    let arguments = ["--package", "crates/cli", "--payload-compress", "gzip", "--output"];
    run(packager(RPM)?.args(arguments).arg(dist))?;
    components(root, dist)
}

/// Removes the packages and the list of components of earlier builds from `dist`.
pub fn remove(dist: &Path) -> anyhow::Result<()> {
    let files = fs::read_dir(dist).with_context(|| format!("cannot read {}", dist.display()))?;
    for file in files {
        let path = file.with_context(|| format!("cannot read {}", dist.display()))?.path();
        if is_package_or_list(&path) {
            fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Whether the file is a package or the list of components.
fn is_package_or_list(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == LIST
        || name.starts_with("lowlat_") && name.ends_with(".deb")
        || name.starts_with("lowlat-") && name.ends_with(".rpm")
}

/// PATH with the tool, which is installed if this version is missing.
pub fn path_with(root: &Path, (name, version): Tool) -> anyhow::Result<OsString> {
    let folder = root.join("target/tools").join(format!("{name}-{version}"));
    let programs = folder.join("bin");
    if !programs.join(name).exists() {
        let tool = format!("{name}@{version}");
        run(cargo().args(["install", &tool, "--locked", "--debug", "--root"]).arg(&folder))?;
    }
    path_before(programs)
}

/// Man pages and completions, as the binary itself prints them.
fn texts(dist: &Path) -> anyhow::Result<()> {
    let binary = dist.join("lowlat");
    let (man, completions) = (dist.join("man"), dist.join("completions"));
    for folder in [&man, &completions] {
        // An earlier version may have had pages that this one lacks.
        if folder.exists() {
            fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
        }
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
fn components(root: &Path, dist: &Path) -> anyhow::Result<()> {
    let path = dist.join(LIST);
    let mut program = Command::new(COMPONENTS.0);
    let text = output(program.env("PATH", path_with(root, COMPONENTS)?).arg(dist.join("lowlat")))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_and_the_list_are_removed() {
        let folder = std::env::temp_dir().join(format!("lowlat-xtask-{}", std::process::id()));
        fs::create_dir_all(folder.join("man")).unwrap();
        let kept = ["lowlat", "lowlat-0.1.0-cp39-abi3-manylinux_2_28_x86_64.whl", "lowlat.debug"];
        let removed = ["lowlat-0.1.0-1.x86_64.rpm", "lowlat.cdx.json", "lowlat_0.1.0-1_amd64.deb"];
        for name in kept.iter().chain(&removed) {
            fs::write(folder.join(name), "").unwrap();
        }
        remove(&folder).unwrap();
        assert!(removed.iter().all(|name| !folder.join(name).exists()));
        assert!(kept.iter().chain(&["man"]).all(|name| folder.join(name).exists()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
