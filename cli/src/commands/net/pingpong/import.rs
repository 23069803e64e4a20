//! Logs of sfnt-pingpong.

use super::arguments::NetPingpongArgs;
use crate::{commands::outputs::Form, documents, exit::Exit, output};
use lowlat_net::sfnt::{self, SfntLog, reference};
use std::path::Path;

/// Reads the logs and prints them.
pub fn run(arguments: &NetPingpongArgs) -> anyhow::Result<Exit> {
    let imported = || arguments.import.iter().map(|file| read(file)).collect::<anyhow::Result<Vec<_>>>();
    let logs = if arguments.reference { reference::published()? } else { imported()?.concat() };
    let width = output::width();
    match arguments.outputs.format.or_json(arguments.outputs.json) {
        Form::Sfnt | Form::SfntV15 => {
            let damaged = logs.iter().flat_map(|log| &log.damaged);
            damaged.for_each(|error| output::talk(&format!("lowlat net: left out: {error}")));
            output::print_plain(&logs.iter().map(ToString::to_string).collect::<String>())?;
        }
        Form::Json => {
            let logs = serde_json::json!({ "logs": logs });
            output::print_json(&output::Document::of("lowlat-net-logs", logs))?;
        }
        _ if arguments.reference => output::print(&lowlat_net_report::sfnt_reference_text(&logs, width))?,
        _ => output::print(&lowlat_net_report::sfnt_log_text(&logs, width))?,
    }
    Ok(Exit::Clean)
}

fn read(file: &Path) -> anyhow::Result<Vec<SfntLog>> {
    let shown = file.display();
    let hint = "name a file with the output of sfnt-pingpong";
    sfnt::parse(&lowlat_net::plain(&documents::named(file, hint)?))
        .map_err(|error| anyhow::anyhow!("cannot read {shown}: {error}\nhint: {hint}"))
}
