//! The `lowlat` binary: parses, calls the libraries, prints. One file per subcommand, no logic.

mod arguments;
mod choose;
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
            output::talk(&format!("lowlat {name}: {}", in_words(&error)));
            Exit::from(&error).into()
        }
        None => Exit::Error.into(),
    }
}

/// The error with what led to it; errors of the libraries that name their cause themselves do not name it twice.
fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words.push_str(": ");
            words.push_str(&cause);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_named_once() {
        let error =
            anyhow!("no such file").context("cannot read /x: no such file; try another").context("not done");
        assert_eq!(in_words(&error), "not done: cannot read /x: no such file; try another");
        assert_eq!(in_words(&anyhow!("alone")), "alone");
    }
}
