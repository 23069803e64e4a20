//! `lowlat net stream`: messages in one direction at rising rates.

mod arguments;
mod client;

use crate::{commands::Subcommand, output::Exit};
use arguments::{Action, Arguments};
use clap::{ArgMatches, FromArgMatches};

pub const COMMAND: Subcommand = Subcommand { name: "stream", declare: arguments::declare, run };

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    match (&arguments.action, &arguments.from) {
        (Some(Action::Client(client)), _) => client::run(client),
        (None, Some(file)) => {
            let outputs = client::Outputs::prepare(&arguments.outputs)?;
            outputs.write(&arguments.outputs.files.read(file)?)?;
            Ok(Exit::Clean)
        }
        // The parser asks for one of them.
        (None, None) => Ok(Exit::Clean),
    }
}
