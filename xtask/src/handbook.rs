//! `cargo xtask handbook`: `docs/` with what is generated, as a site.

use crate::{
    run::{cargo, run},
    workspace::Workspace,
};
use anyhow::Context as _;
use std::{fs, process::Command};

pub fn make() -> anyhow::Result<()> {
    let workspace = Workspace::read()?;
    let sources = workspace.target_directory.join("handbook");
    if sources.exists() {
        fs::remove_dir_all(&sources).with_context(|| format!("cannot remove {}", sources.display()))?;
    }
    run(Command::new("cp").arg("-r").arg(workspace.root.join("docs")).arg(&sources))?;
    // Tests write what they check. Of all crates, because those of one would be another build.
    run(cargo().args(["test", "--quiet", "--workspace", "--tests", "handbook"]).env("HANDBOOK", &sources))?;
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("{}: no site is made of it: mdbook is not installed", sources.display());
        return Ok(());
    }
    run(Command::new("mdbook").arg("build").arg(&sources))
}
