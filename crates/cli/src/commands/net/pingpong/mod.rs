//! `lowlat net pingpong`: round trips between a client and a server, earlier runs, and logs of sfnt-pingpong.

mod arguments;
mod client;
mod import;
mod outputs;
mod server;

use crate::{commands::Subcommand, documents, output::Exit};
use arguments::{Action, Arguments};
use clap::{ArgMatches, FromArgMatches};
use outputs::Outputs;

pub const COMMAND: Subcommand = Subcommand { name: "pingpong", declare: arguments::declare, run };

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    match &arguments.action {
        Some(Action::Server(server)) => server::run(server),
        Some(Action::Client(client)) => client::run(client),
        None => match &arguments.from {
            Some(file) => {
                let outputs = Outputs::prepare(&arguments.outputs)?;
                outputs.write(&documents::read(file)?)?;
                Ok(Exit::Clean)
            }
            None => import::run(&arguments),
        },
    }
}
