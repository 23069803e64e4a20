//! `lowlat onload firmware`.

use super::{Running, SessionGuard, perform, variant};
use crate::{commands::examples, exit::Exit, output};
use clap::Args;
use lowlat_host::snapshot::Nic;
use lowlat_host_run::{Root, snapshot};
use lowlat_net::onload::{VARIANT, firmware, is_x4};
use lowlat_net_report::Solarflare;

/// Update a card's firmware and choose its variant; needs a reboot
#[derive(Debug, Args)]
#[command(after_help = examples(&[("sudo lowlat onload firmware enp1s0f1 --update", "Update the firmware and choose ultra-low-latency.")]))]
pub struct OnloadFirmwareArgs {
    /// Interface of the card
    #[arg(value_name = "IF")]
    interface: String,
    /// Choose this variant
    #[arg(long, value_name = "NAME", default_value = VARIANT)]
    variant: String,
    /// First write the newest firmware of the installed package
    #[arg(long)]
    update: bool,
    #[command(flatten)]
    guard: SessionGuard,
    #[command(flatten)]
    running: Running,
}

pub fn run(arguments: &OnloadFirmwareArgs) -> anyhow::Result<Exit> {
    let interface = &arguments.interface;
    let host = snapshot::read_without_knobs(&Root::live());
    let nic = host.nics.iter().find(|nic| nic.name == *interface);
    anyhow::ensure!(
        nic.is_none_or(|nic| Solarflare::of(nic) != Solarflare::No),
        "cannot set the firmware of {interface}: it is not a Solarflare card\nhint: `lowlat onload status` lists the Solarflare cards"
    );
    // sfboot also knows cards by names that are not interfaces.
    let other = Nic { name: interface.clone(), ..Nic::default() };
    let nic = nic.unwrap_or(&other);
    let present = variant(nic, true);
    match present {
        Some(present) if *present == arguments.variant && !arguments.update => {
            output::print_plain(&format!("{interface} has variant {present}; nothing to do."))?;
            return Ok(Exit::Clean);
        }
        Some(present) => output::talk(&format!("{interface} has variant {present}.")),
        None => output::talk(&format!("warning: the variant of {interface} is not known")),
    }
    if arguments.update && !arguments.running.dry_run {
        arguments.guard.check("write the firmware", &host)?;
    }
    let procedure = firmware(interface, is_x4(nic), arguments.update, &arguments.variant, present);
    perform(&procedure, &arguments.running)
}
