//! The `lowlat` binary: parses, calls the libraries, prints. One file per subcommand, no logic.

mod arguments;
mod commands;
mod documents;
mod host;
mod output;
mod progress;
mod results;
mod signals;

use output::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = commands::cli().get_matches();
    let Some((name, arguments)) = matches.subcommand() else { return Exit::Error.into() };
    let command = commands::COMMANDS.iter().find(|command| command.name == name);
    match command.map(|command| (command.run)(arguments)) {
        Some(Ok(exit)) => exit.into(),
        Some(Err(error)) => {
            output::talk(&format!("lowlat {name}: {error:#}"));
            Exit::Error.into()
        }
        None => Exit::Error.into(),
    }
}
