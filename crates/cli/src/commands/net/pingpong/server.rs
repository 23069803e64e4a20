//! The server.

use super::arguments::{PORT, ServerArgs};
use crate::{
    output::{self, Exit},
    signals,
};
use lowlat_measure::net::{self, ServerEvent, ServerOptions};
use lowlat_sys::Root;

/// Serves until Ctrl-C, or for one run.
pub fn run(arguments: &ServerArgs) -> anyhow::Result<Exit> {
    let listen =
        if arguments.listen.is_empty() { net::everywhere(PORT).to_vec() } else { arguments.listen.clone() };
    let options = ServerOptions { listen, cpu: arguments.cpu, is_single: arguments.once };
    let stop = signals::stop_flag()?;
    net::run_server(&Root::live(), &options, &stop, &|event| output::talk(&in_words(event)))?;
    Ok(Exit::Clean)
}

fn in_words(event: &ServerEvent) -> String {
    match event {
        ServerEvent::Listens(address) => format!("listening on {address}"),
        ServerEvent::Started { peer, what, cpu } => {
            let cpu = cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
            format!("{peer}: {what}{cpu}")
        }
        ServerEvent::Ended { peer, answered, error: None } => format!("{peer}: answered {answered} messages"),
        ServerEvent::Ended { peer, answered, error: Some(error) } => {
            format!("{peer}: answered {answered} messages, then: {error}")
        }
        ServerEvent::Refused { peer, why } => format!("{peer}: refused: {why}"),
    }
}
