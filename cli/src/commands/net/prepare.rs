//! `lowlat net prepare`: the part of the plan that concerns one interface and the network.

use crate::commands::{
    completions, help,
    tune::{self, CarryOutArgs},
};
use crate::{exit::Exit, host::HostArgs, output};
use clap::Args;
use lowlat_plan::Plan;
use lowlat_tune_run::flow::ApplyOptions;

/// Prepare the host for network traffic of one interface, through the undo log
#[derive(Debug, Args)]
#[command(after_help = help("Plans the settings of the interface and its interrupts, the network's sysctls, power saving that delays a \
    packet, and services that come between; of a bond, VLAN or macvlan, those of the interfaces below it. \
    `lowlat tune plan` has the rest: isolation and the command line.\n\
    `lowlat tune verify` checks what was applied, `lowlat tune rollback` restores it.\n\n\
    Exit codes: 0 nothing to change or in force, 1 changes planned or some refused, 2 error, \
    4 nothing to change, but less than half of the settings could be checked.", &[
    ("lowlat net prepare enp1s0f1 --dry-run", "Show what would change, and what would not and why."),
    ("sudo lowlat net prepare enp1s0f1", "Apply it, after confirmation."),
    ("sudo lowlat net prepare enp1s0f1 --accept-risk service.firewalld", "Also stop the packet filter."),
]))]
pub struct NetPrepareArgs {
    /// Prepare this interface
    #[arg(value_name = "IF")]
    interface: String,
    #[command(flatten)]
    host: HostArgs,
    /// Accept the risk of this setting; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Suspend interrupts while applications busy-poll with epoll (Linux 6.13)
    #[arg(long)]
    for_busy_polling: bool,
    #[command(flatten)]
    carry_out: CarryOutArgs,
    /// Apply only changes that take effect at once and end with a reboot: no file, no service
    #[arg(long, conflicts_with = "dry_run")]
    only_run_time: bool,
}

pub fn run(arguments: &NetPrepareArgs) -> anyhow::Result<Exit> {
    tune::check_ids(&arguments.accept_risk)?;
    let mut host = arguments.host.read()?;
    let nic = super::found(&host.snapshot, &arguments.interface)?;
    if nic.carrier.known() == Some(&false) {
        output::talk(&format!("warning: {} has no carrier, so nothing can be measured over it", nic.name));
    }
    if !nic.lower.is_empty() {
        let below: Vec<String> =
            host.snapshot.carriers_of(std::slice::from_ref(&nic.name)).into_iter().collect();
        output::talk(&format!("{} stands on {}: prepared in its place", nic.name, below.join(", ")));
    }
    host.role.accepted_risks.extend(arguments.accept_risk.iter().cloned());
    host.role.is_busy_polling |= arguments.for_busy_polling;
    let plan = Plan::for_interface(&host.context(), env!("CARGO_PKG_VERSION"), &arguments.interface);
    let options = ApplyOptions { only_run_time: arguments.only_run_time, ..ApplyOptions::default() };
    arguments.carry_out.run(&arguments.host.root, &host.snapshot, plan, options)
}
