//! `lowlat net stream`: messages in one direction at rising rates.

mod arguments;
mod client;

use crate::{commands::Subcommand, output::Exit};
use arguments::Action;
pub use arguments::Format;
use clap::{ArgMatches, FromArgMatches};
pub use client::print;

pub const COMMAND: Subcommand = Subcommand { name: "stream", declare: arguments::declare, run };

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let Action::Client(client) = Action::from_arg_matches(matches)?;
    client::run(&client)
}
