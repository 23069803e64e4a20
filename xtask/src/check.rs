//! `cargo xtask check`: the quick checks of the crates that differ from main.

use crate::{
    run::{cargo, output, run},
    workspace::Workspace,
};
use clap::Args;
use std::{collections::BTreeSet, path::Path, process::Command, time::Instant};

#[derive(Debug, Args)]
pub struct Options {
    /// Compare with this commit or branch
    #[arg(long, value_name = "COMMIT", default_value = "main")]
    since: String,
    /// Check the crates that depend on the changed ones too
    #[arg(long)]
    dependents: bool,
    /// Check only these crates, changed or not
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

pub fn check(options: &Options) -> anyhow::Result<()> {
    let start = Instant::now();
    run(cargo().args(["fmt", "--all", "--check"]))?;
    let workspace = Workspace::read()?;
    let mut names = chosen(&workspace, options)?;
    if options.dependents {
        names = workspace.with_dependents(names);
    }
    if names.is_empty() {
        eprintln!("No crate differs from {}.", options.since);
        return Ok(());
    }
    run(packages(cargo().arg("clippy"), &names).args(["--all-targets", "--", "-D", "warnings"]))?;
    for (kinds, flag) in [(["lib", "rlib"].as_slice(), "--lib"), (&["bin"], "--bins")] {
        let tested = workspace.tested_in(kinds, &names);
        if !tested.is_empty() {
            run(packages(cargo().arg("test"), &tested).args([flag, "--quiet"]))?;
        }
    }
    eprintln!("Checked {} in {:.0} s.", Vec::from_iter(names).join(", "), start.elapsed().as_secs_f64());
    Ok(())
}

fn chosen<'a>(workspace: &'a Workspace, options: &'a Options) -> anyhow::Result<BTreeSet<&'a str>> {
    if !options.crates.is_empty() {
        return Ok(options.crates.iter().map(String::as_str).collect());
    }
    let files = changed(&workspace.root, &options.since)?;
    for file in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rust-toolchain.toml"] {
        if files.iter().any(|changed| changed == file) {
            eprintln!("note: {file} differs too, which concerns every crate; .ci/run checks them all");
        }
    }
    Ok(workspace.owners(&files))
}

/// The files that differ from where this branch left `since`, committed or not.
fn changed(top: &Path, since: &str) -> anyhow::Result<Vec<String>> {
    let git = |arguments: &[&str]| output(Command::new("git").current_dir(top).args(arguments));
    let base = git(&["merge-base", since, "HEAD"])?;
    let differ = git(&["diff", "--name-only", "-z", base.trim()])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let files = differ.split('\0').chain(untracked.split('\0'));
    Ok(files.filter(|file| !file.is_empty()).map(str::to_owned).collect())
}

fn packages(command: &mut Command, names: impl IntoIterator<Item = impl AsRef<str>>) -> &mut Command {
    for name in names {
        command.args(["-p", name.as_ref()]);
    }
    command
}
