//! `lowlat onload firmware`.

use super::{Running, perform, variant};
use crate::{commands::examples, exit::Exit, output};
use clap::Args;
use lowlat_host_run::{Root, snapshot};
use lowlat_net::onload::{VARIANT, firmware};
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
    running: Running,
}

pub fn run(arguments: &OnloadFirmwareArgs) -> anyhow::Result<Exit> {
    let interface = &arguments.interface;
    anyhow::ensure!(
        !is_another_card(interface),
        "cannot set the firmware of {interface}: it is not a Solarflare card\nhint: `lowlat onload status` lists the Solarflare cards"
    );
    let present = variant(interface);
    match &present {
        Some(present) if *present == arguments.variant && !arguments.update => {
            output::print_plain(&format!("{interface} has variant {present}; nothing to do."))?;
            return Ok(Exit::Clean);
        }
        Some(present) => output::talk(&format!("{interface} has variant {present}.")),
        None => output::talk(&format!("warning: sfboot does not report the variant of {interface}")),
    }
    let procedure = firmware(interface, arguments.update, &arguments.variant, present.as_deref());
    perform(&procedure, &arguments.running)
}

/// True if this host has the interface, and neither its driver nor its address is Solarflare's.
fn is_another_card(interface: &str) -> bool {
    let host = snapshot::read_without_knobs(&Root::live());
    host.nics.iter().any(|nic| nic.name == interface && Solarflare::of(nic) == Solarflare::No)
}
