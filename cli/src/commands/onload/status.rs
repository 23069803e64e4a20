//! `lowlat onload status`.

use super::{Subcommand, examples, path, variant};
use crate::{
    host::HostArgs,
    output::{self, Exit},
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_host_run::programs;
use lowlat_net::onload::HELPERS;
use lowlat_net_report::{NicView, OnloadStatus, Solarflare, onload_status_text};

pub const COMMAND: Subcommand = Subcommand { name: "status", declare, run };

#[derive(Debug, Args)]
struct OnloadStatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

fn declare(command: Command) -> Command {
    OnloadStatusArgs::augment_args(command)
        .about("Show Solarflare cards with their firmware variant, and what of Onload is installed")
        .after_help(examples(&[("lowlat onload status", "Show cards and installed programs.")]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = OnloadStatusArgs::from_arg_matches(matches)?;
    let host = arguments.host.read()?;
    let isolated = host.snapshot.cpus_isolated();
    let stack = host.snapshot.bypasses.iter().find(|stack| stack.name == "Onload");
    let views = host.snapshot.nics.iter().map(|nic| NicView::of(&host.snapshot, &isolated, nic));
    let cards = views.filter(|view| view.solarflare != Solarflare::No);
    let is_live = host.root.is_live();
    let status = OnloadStatus {
        cards: cards
            .map(|view| {
                let variant = is_live.then(|| variant(&view.nic.name)).flatten();
                (view, variant)
            })
            .collect(),
        found: stack.and_then(|stack| stack.found.known().cloned()),
        version: stack.and_then(|stack| stack.version.known().cloned()),
        is_loaded: stack.is_some_and(|stack| stack.is_loaded.known() == Some(&true)),
        helpers: HELPERS.map(|name| (name, programs::find(&host.root, name, &path()))).to_vec(),
    };
    output::print_as(arguments.json, &output::Document::of("lowlat-onload", &status), |width| {
        onload_status_text(&status, width)
    })?;
    Ok(Exit::Clean)
}
