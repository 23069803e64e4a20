//! `lowlat net pingpong`: round trips between a client and a server, earlier runs, and logs of sfnt-pingpong.

mod arguments;
mod client;
mod import;

use crate::exit::Exit;
use arguments::{Action, ClientArgs};
pub use arguments::{EndArgs, NetPingpongArgs, PORT, percentile, size_list, with_port as server_with_port};
use clap::{Args as _, Command, FromArgMatches};
pub use client::print;
use lowlat_net_run::ClientOptions;

pub fn run(arguments: &NetPingpongArgs) -> anyhow::Result<Exit> {
    match &arguments.action {
        Some(Action::Client(client)) => client::run(client),
        None => import::run(arguments),
    }
}

/// The options of a client with these arguments, for a command that runs it itself.
pub fn client_options(words: &[String]) -> anyhow::Result<ClientOptions> {
    let command =
        ClientArgs::augment_args(Command::new("client")).no_binary_name(true).disable_help_flag(true);
    // clap's text has usage and tips of a command that the user did not type.
    let matches = command.try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        anyhow::anyhow!("{line}\nhint: `lowlat net pingpong client --help` lists its arguments")
    })?;
    let arguments = ClientArgs::from_arg_matches(&matches)?;
    anyhow::ensure!(
        !arguments.outputs.is_asked_for() && arguments.raw.is_none(),
        "outputs are those of the comparison\nhint: write --json, --report and --result before the first --"
    );
    client::options(&arguments, words.join(" "))
}
