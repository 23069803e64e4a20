//! `lowlat onload register`.

use crate::commands::{help, net, tune::CarryOutArgs};
use crate::{exit::Exit, host::HostArgs};
use clap::Args;
use lowlat_plan::Plan;
use lowlat_tune_run::flow::ApplyOptions;

/// Let Onload drive an interface without a card of its own over AF_XDP, through the undo log
#[derive(Debug, Args)]
#[command(after_help = help("Onload's module must be loaded. The kernel goes on to serve programs that run without Onload. lowlat.service \
    registers the interface again after a reboot; Onload keeps a registration until its \
    module is unloaded: `onload_tool reload`, then `lowlat tune rollback`, or a reboot ends it.\n\n\
    Exit codes: 0 nothing to change or in force, 1 to be registered, 2 error, 4 not known whether it is registered.", &[
    ("lowlat onload register enp1s0f1 --dry-run", "Show what would change."),
    ("sudo lowlat onload register enp1s0f1", "Register it, after confirmation."),
]))]
pub struct OnloadRegisterArgs {
    /// Register this interface
    #[arg(value_name = "IF")]
    interface: String,
    #[command(flatten)]
    host: HostArgs,
    #[command(flatten)]
    carry_out: CarryOutArgs,
}

pub fn run(arguments: &OnloadRegisterArgs) -> anyhow::Result<Exit> {
    let mut host = arguments.host.read()?;
    host.role.nics = vec![net::found(&host.snapshot, &arguments.interface)?.name.clone()];
    host.role.is_using_onload = true;
    let plan = Plan::of_some(&host.context(), env!("CARGO_PKG_VERSION"), |setting| {
        setting.id == "nic.onload_queues"
    });
    arguments.carry_out.run(&arguments.host.root, &host.snapshot, plan, ApplyOptions::default())
}
