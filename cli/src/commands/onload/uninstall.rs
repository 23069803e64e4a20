//! `lowlat onload uninstall`.

use super::{Running, SessionGuard, has_user, path, perform, said};
use crate::{commands::examples, exit::Exit, output};
use clap::Args;
use lowlat_host::{HostSnapshot, snapshot::Nic};
use lowlat_host_run::{
    Root,
    programs::{find, with_open_file},
    snapshot,
};
use lowlat_net::onload::{Installed, OnloadRemains, uninstall};
use std::{collections::BTreeSet, path::Path};

/// A package manager: the query for the packages that own a file, the query whether a package is installed, which prints
/// "installed", and the command that removes packages. A manager that also removes dependent packages has a simulation
/// of that command.
struct PackageManager {
    owner: &'static [&'static str],
    state: &'static [&'static str],
    remove: &'static [&'static str],
    simulation: &'static [&'static str],
}

const MANAGERS: [PackageManager; 2] = [
    PackageManager {
        owner: &["rpm", "-qf", "--queryformat", "%{NAME}\n"],
        state: &["rpm", "-q", "--queryformat", "installed"],
        remove: &["rpm", "-e"],
        simulation: &[],
    },
    PackageManager {
        owner: &["dpkg-query", "-S"],
        state: &["dpkg-query", "-W", "-f", "${db:Status-Status}"],
        remove: &["apt-get", "remove", "-y"],
        simulation: &["apt-get", "-s", "remove"],
    },
];
/// Onload's packages; some own no file that is in use.
const PACKAGES: [&str; 10] = [
    "onload",
    "onload-user",
    "onload-dkms",
    "onload-source",
    "onload-dev",
    "onload-examples",
    "onload-kmod",
    "openonload",
    "sfc-dkms",
    "sfutils",
];
/// Onload's programs and kernel modules.
const PROGRAMS: [&str; 3] = ["onload", "onload_tool", "onload_uninstall"];
const MODULES: [&str; 5] = ["sfc", "sfc_resource", "sfc_char", "sfc_affinity", "onload"];
/// Modules of a card's driver, which the kernel has too.
const DRIVERS: [&str; 2] = ["sfc", "xilinx_efct"];
/// Programs that write the initramfs, with their arguments.
const INITRAMFS: [&[&str]; 3] = [&["update-initramfs", "-u"], &["dracut", "--force"], &["mkinitcpio", "-P"]];

/// Unload and remove Onload, its driver and its packages
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat onload uninstall --dry-run", "Show what would be removed.")]))]
pub struct OnloadUninstallArgs {
    #[command(flatten)]
    guard: SessionGuard,
    #[command(flatten)]
    running: Running,
}

pub fn run(arguments: &OnloadUninstallArgs) -> anyhow::Result<Exit> {
    let root = Root::live();
    let host = snapshot::read_without_knobs(&root);
    let installed = installed(&root, &host, &arguments.running.log)?;
    if installed.is_nothing() {
        output::print_plain("Onload is not installed: nothing to remove.")?;
        return Ok(Exit::Clean);
    }
    if !arguments.running.dry_run {
        arguments.guard.check("remove the driver", &host)?;
    }
    perform(&uninstall(&installed)?, &arguments.running)
}

fn installed(root: &Root, host: &HostSnapshot, log: &Path) -> anyhow::Result<Installed> {
    let path = path();
    let program = |name: &str| find(root, name, &path);
    // The kernel's own driver belongs to the kernel's package.
    let own_file = |module: &'static str| {
        let file = said(&["modinfo", "-n", module])?.trim().to_owned();
        (file.starts_with('/') && !file.contains("/kernel/drivers/")).then_some(file)
    };
    let modules = MODULES.into_iter().filter_map(own_file);
    let files: Vec<String> = PROGRAMS.iter().filter_map(|name| program(name)).chain(modules).collect();
    let (packages, manager) = packages(&files)?;
    let is_loaded = |driver: &&str| root.exists(&format!("/sys/module/{driver}"));
    let drivers = DRIVERS.into_iter().filter(is_loaded).filter(|driver| own_file(driver).is_some());
    let drivers: Vec<&'static str> = drivers.collect();
    let tool = program("onload_tool");
    let is_of = |nic: &&Nic| drivers.contains(&nic.driver.text());
    Ok(Installed {
        packages,
        manager,
        has_onload_only: tool
            .as_ref()
            .and_then(|tool| root.read(tool).into_known())
            .is_some_and(|script| script.contains("--onload-only")),
        has_tool: tool.is_some(),
        has_uninstall: program("onload_uninstall").is_some(),
        interfaces: host.nics.iter().filter(is_of).map(|nic| nic.name.clone()).collect(),
        initramfs: INITRAMFS.into_iter().find(|words| program(words[0]).is_some()).unwrap_or_default(),
        // Onload ends its own server before it unloads.
        users: with_open_file(root, is_in_use)
            .into_iter()
            .filter(|user| !user.starts_with("onload_cp"))
            .collect(),
        drivers,
        remains: root
            .read_lossy(&std::path::absolute(log)?.display().to_string())
            .map(|log| OnloadRemains::parse(&log).existing(|path| root.exists(path), has_user())),
    })
}

/// Returns the packages of Onload, by their names and by its files, with the command that removes them.
fn packages(files: &[String]) -> anyhow::Result<(Vec<String>, &'static [&'static str])> {
    for manager in &MANAGERS {
        let owners = files.iter().filter_map(|file| said(&[manager.owner, &[file]].concat()));
        let is_installed = |name: &&str| {
            said(&[manager.state, &[*name]].concat()).is_some_and(|state| state.trim() == "installed")
        };
        let mut packages: BTreeSet<String> = owners.flat_map(|owners| names(&owners)).collect();
        packages.extend(PACKAGES.into_iter().filter(is_installed).map(str::to_owned));
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

/// Returns whether an open file keeps Onload's module loaded.
fn is_in_use(file: &str) -> bool {
    let name = file.trim_start_matches('/');
    name.starts_with("onload:[") || name.starts_with("dev/onload")
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
