//! `lowlat onload demos`.

use super::{Running, path, perform};
use crate::{commands::examples, exit::Exit, output};
use anyhow::{Context as _, bail, ensure};
use clap::Args;
use lowlat_host_run::programs::{Program, exit_code};
use lowlat_net::onload::{build_demos, demos, demos_folder, demos_makefile};
use std::path::PathBuf;

/// List, build or run the ef_vi demonstrations of an Onload release
#[derive(Debug, Args)]
#[command(after_help = examples(&[
    ("lowlat onload demos /usr/local/src/openonload-201811-u1 --build", "Build them."),
    ("lowlat onload demos /usr/local/src/openonload-201811-u1 --run eflatency -- ping enp1s0f1", "Measure half round trips of raw frames."),
]))]
pub struct OnloadDemosArgs {
    /// Folder of an unpacked and built release
    #[arg(value_name = "DIR")]
    release: PathBuf,
    /// Build the demonstrations
    #[arg(long, conflicts_with = "run")]
    build: bool,
    /// Run this demonstration, with the arguments after --
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Arguments of the demonstration
    #[arg(last = true, requires = "run", value_name = "ARGS")]
    passed: Vec<String>,
    #[command(flatten)]
    running: Running,
}

pub fn run(arguments: &OnloadDemosArgs) -> anyhow::Result<Exit> {
    let release = std::path::absolute(&arguments.release)?.display().to_string();
    let folder = PathBuf::from(demos_folder(&release));
    ensure!(
        folder.is_dir(),
        "cannot use the demonstrations: {} does not exist\nhint: build the release first with `lowlat onload install`",
        folder.display()
    );
    if arguments.build {
        return perform(&build_demos(&release, &path()), &arguments.running);
    }
    let makefile = demos_makefile(&release);
    let makefile = std::fs::read_to_string(&makefile).with_context(|| format!("cannot read {makefile}"))?;
    let demos = demos(&makefile);
    let Some(name) = &arguments.run else {
        let lines = demos.iter().map(|(name, what)| {
            let state = if folder.join(name).is_file() { "built" } else { "not built" };
            format!("{name:<20} {state:<10} {what}").trim_end().to_owned()
        });
        output::print_plain(&lines.collect::<Vec<_>>().join("\n"))?;
        return Ok(Exit::Clean);
    };
    if !demos.iter().any(|(known, _)| known == name) {
        let names: Vec<&str> = demos.iter().map(|(name, _)| *name).collect();
        bail!("cannot run \"{name}\": no such demonstration\nhint: choose one of {}", names.join(", "));
    }
    let command = [vec![format!("./{name}")], arguments.passed.clone()].concat();
    let program = Program { command: &command, folder: &folder.display().to_string(), environment: &[] };
    let status = program.run().with_context(|| format!("cannot run {name}\nhint: build it with --build"))?;
    Ok(Exit::Command(exit_code(status)))
}
