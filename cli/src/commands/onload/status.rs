//! `lowlat onload status`.

use super::{path, variant};
use crate::{commands::examples, exit::Exit, host::HostArgs, output};
use clap::Args;
use lowlat_host_run::programs;
use lowlat_net::onload::{HELPERS, is_card_driver};
use lowlat_net_report::{NicView, OnloadStatus, RegisteredInterface, Solarflare, onload_status_text};

/// Show Solarflare cards with their firmware variant, interfaces registered with Onload, and what of it is installed
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat onload status", "Show cards and installed programs.")]))]
pub struct OnloadStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub fn run(arguments: &OnloadStatusArgs) -> anyhow::Result<Exit> {
    let host = arguments.host.read()?;
    let isolated = host.snapshot.cpus_isolated();
    let stack = host.snapshot.bypasses.iter().find(|stack| stack.name == "Onload");
    let views = host.snapshot.nics.iter().map(|nic| NicView::of(&host.snapshot, &isolated, nic));
    let cards = views.filter(|view| view.solarflare != Solarflare::No);
    let is_live = host.root.is_live();
    let status = OnloadStatus {
        cards: cards
            .map(|view| {
                let variant = variant(view.nic, is_live);
                (view, variant)
            })
            .collect(),
        found: stack.and_then(|stack| stack.found.known().cloned()),
        version: stack.and_then(|stack| stack.version.known().cloned()),
        registered: host
            .snapshot
            .nics
            .iter()
            .filter(|nic| !is_card_driver(nic.driver.text()))
            .map(|nic| RegisteredInterface { interface: &nic.name, queues: &nic.onload_queues })
            .collect(),
        is_loaded: stack.is_some_and(|stack| stack.is_loaded.known() == Some(&true)),
        helpers: HELPERS.map(|name| (name, programs::find(&host.root, name, &path()))).to_vec(),
    };
    output::print_as(arguments.json, &output::Document::of("lowlat-onload", &status), |width| {
        onload_status_text(&status, width)
    })?;
    Ok(Exit::Clean)
}
