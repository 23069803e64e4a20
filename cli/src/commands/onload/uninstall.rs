//! `lowlat onload uninstall`.

use super::{Running, path, perform, said};
use crate::{commands::examples, exit::Exit};
use clap::Args;
use lowlat_host_run::{Root, programs::find, snapshot};
use lowlat_net::onload::{session_over, uninstall};
use std::collections::BTreeSet;

/// A package manager: the query for the packages that own a file, and the command that removes packages. A manager that
/// also removes dependent packages has a simulation of that command.
struct PackageManager {
    owner: &'static [&'static str],
    remove: &'static [&'static str],
    simulation: &'static [&'static str],
}

const MANAGERS: [PackageManager; 2] = [
    PackageManager {
        owner: &["rpm", "-qf", "--queryformat", "%{NAME}\n"],
        remove: &["rpm", "-e"],
        simulation: &[],
    },
    PackageManager {
        owner: &["dpkg-query", "-S"],
        remove: &["apt-get", "remove", "-y"],
        simulation: &["apt-get", "-s", "remove"],
    },
];
/// Onload's programs and kernel modules.
const PROGRAMS: [&str; 3] = ["onload", "onload_tool", "onload_uninstall"];
const MODULES: [&str; 5] = ["sfc", "sfc_resource", "sfc_char", "sfc_affinity", "onload"];

/// Unload and remove Onload, its driver and its packages
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat onload uninstall --dry-run", "Show what would be removed.")]))]
pub struct OnloadUninstallArgs {
    /// Remove the driver even if your ssh session runs over the card
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    running: Running,
}

pub fn run(arguments: &OnloadUninstallArgs) -> anyhow::Result<Exit> {
    let host = snapshot::read_without_knobs(&Root::live());
    let session = session_over(&host, &std::env::var("SSH_CONNECTION").unwrap_or_default());
    let (packages, manager) = packages()?;
    perform(&uninstall(&packages, manager, session, arguments.force)?, &arguments.running)
}

/// Returns the packages that own Onload's files, with the command that removes them.
fn packages() -> anyhow::Result<(Vec<String>, &'static [&'static str])> {
    let programs = PROGRAMS.iter().filter_map(|name| find(&Root::live(), name, &path()));
    let module = |name: &&str| Some(said(&["modinfo", "-n", name])?.trim().to_owned());
    // The kernel's own driver belongs to the kernel's package.
    let is_onloads = |path: &String| path.starts_with('/') && !path.contains("/kernel/drivers/");
    let files: Vec<String> = programs.chain(MODULES.iter().filter_map(module).filter(is_onloads)).collect();
    for manager in &MANAGERS {
        let owners = files.iter().filter_map(|file| said(&[manager.owner, &[file]].concat()));
        let packages: BTreeSet<String> = owners.flat_map(|owners| names(&owners)).collect();
        if packages.is_empty() {
            continue;
        }
        let packages: Vec<String> = packages.into_iter().collect();
        let others = others(manager, &packages);
        anyhow::ensure!(
            others.is_empty(),
            "cannot remove {}: {} would also remove {}\nhint: remove the packages manually, or first those that need them",
            packages.join(", "),
            manager.remove.join(" "),
            others.join(", ")
        );
        return Ok((packages, manager.remove));
    }
    Ok((Vec::new(), &[]))
}

/// Names in the answer of a package manager: one a line, or `NAME[:ARCH], NAME: FILE`.
fn names(owners: &str) -> Vec<String> {
    let named = |line: &str| {
        let names = line.split_once(": ").map_or(line, |(names, _)| names).to_owned();
        names
            .split(", ")
            .map(|name| name.split(':').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    owners
        .lines()
        .filter(|line| !line.starts_with("diversion "))
        .flat_map(named)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns what the package manager would remove besides the packages, by its own simulation: `Remv NAME [VERSION]`.
fn others(manager: &PackageManager, packages: &[String]) -> Vec<String> {
    if manager.simulation.is_empty() {
        return Vec::new();
    }
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    let simulated = said(&[manager.simulation, &packages].concat()).unwrap_or_default();
    let removed =
        simulated.lines().filter_map(|line| line.strip_prefix("Remv ")?.split_ascii_whitespace().next());
    let removed = removed.map(|name| name.split(':').next().unwrap_or(name));
    removed.filter(|name| !packages.contains(name)).map(str::to_owned).collect()
}
