//! `lowlat net nics`: shows every network interface, and whether a measurement over it is meaningful.

use crate::{commands::help, exit::Exit, host::HostArgs, output};
use clap::Args;
use lowlat_host::{HostSnapshot, snapshot::Nic};
use lowlat_net_report::NicView;
use lowlat_settings::Checked;
use serde_json::json;

/// Show network interfaces: card, link, place, queues, interrupts, NAPI and what they lack
#[derive(Debug, Args)]
#[command(after_help = help("A port without carrier is marked as unusable for measurement.\n\n\
    Exit codes: 0 every interface is usable, 1 one is not, 2 error, 4 none is known to be unusable, \
    but the carrier of fewer than half could be read.", &[
    ("lowlat net nics", "Show every physical interface."),
    ("lowlat net nics enp1s0f1", "Show one interface."),
    ("lowlat net nics --root desk7.tar.gz --json", "Print those of a captured host as JSON."),
]))]
pub struct NetNicsArgs {
    /// Show these interfaces [default: every physical one]
    #[arg(value_name = "IF")]
    interfaces: Vec<String>,
    #[command(flatten)]
    host: HostArgs,
    /// Print the interfaces as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &NetNicsArgs) -> anyhow::Result<Exit> {
    let host = arguments.host.read()?;
    let isolated = &host.allocation.isolated;
    let nics = chosen(&host.snapshot, &arguments.interfaces)?;
    let views: Vec<NicView<'_>> =
        nics.into_iter().map(|nic| NicView::of(&host.snapshot, isolated, nic)).collect();
    if arguments.json {
        let nics = json!({ "nics": views, "bypasses": host.snapshot.bypasses });
        output::print_json(&output::Document::of("lowlat-nics", nics))?;
    } else {
        if views.is_empty() {
            output::talk("No physical interface was found. Name an interface to see a virtual one.");
        }
        output::print(&lowlat_net_report::nics_text(&host.snapshot, isolated, &views, output::width()))?;
    }
    let count = |is: Option<bool>| views.iter().filter(|view| view.is_usable() == is).count();
    // A host without an interface was not checked: none may have been read.
    let unknown = count(None).max(usize::from(views.is_empty()));
    let unusable = count(Some(false));
    Ok(Checked { checked: unusable + count(Some(true)), unknown }.claim(unusable > 0).into())
}

/// The interfaces named, or every physical one.
fn chosen<'a>(host: &'a HostSnapshot, names: &[String]) -> anyhow::Result<Vec<&'a Nic>> {
    if names.is_empty() {
        return Ok(host.nics.iter().filter(|nic| nic.is_physical).collect());
    }
    names.iter().map(|name| super::found(host, name)).collect()
}
