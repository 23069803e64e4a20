//! The `lowlat` binary: parses, calls the libraries, prints. One file per subcommand, no logic.
#![allow(clippy::struct_excessive_bools, reason = "arguments of a command are flags that users type")]

mod arguments;
mod choose;
mod commands;
mod documents;
mod exit;
mod host;
mod labels;
mod output;
mod progress;
mod results;
mod role;
mod signals;
mod trusted;

use exit::Exit;
use lowlat_host::printable;
use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

fn main() -> ExitCode {
    output::set_panic_hook();
    lowlat_host_run::output::set_signals();
    commands::completions::answer();
    let word = std::env::args_os().nth(1);
    if word.is_none() {
        return show_standing();
    }
    let matches = commands::cli_for(word.as_deref())
        .try_get_matches()
        .unwrap_or_else(|error| refuse(&commands::with_tip(error)));
    let Some((name, arguments)) = matches.subcommand() else { return show_standing() };
    let command = commands::COMMANDS.iter().find(|command| command.name == name);
    let run = |command: &commands::Subcommand| {
        results::check_outputs(arguments)?;
        (command.run)(arguments)
    };
    match command.map(run) {
        Some(Ok(exit)) => exit.into(),
        Some(Err(error)) => {
            output::talk(&format!("lowlat {name}: {}", in_words(&error)));
            Exit::from(&error).into()
        }
        None => Exit::Error.into(),
    }
}

/// Runs `lowlat` without a command.
fn show_standing() -> ExitCode {
    commands::standing::run().map_or_else(
        |error| {
            output::talk(&format!("lowlat: {}", in_words(&error)));
            Exit::from(&error).into()
        },
        ExitCode::from,
    )
}

/// Prints the usage error or the help, and ends the process.
fn refuse(error: &clap::Error) -> ! {
    let is_unsafe = |argument: OsString| argument.to_string_lossy().contains(printable::is_unsafe);
    if !error.use_stderr() {
        match error.print().and_then(|()| io::stdout().flush()) {
            Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
                output::talk(&format!("lowlat: cannot write to stdout: {fault}"));
                std::process::exit(2);
            }
            _ => std::process::exit(error.exit_code()),
        }
    }
    let words = error.render();
    if std::env::args_os().any(is_unsafe) {
        // clap quotes arguments unescaped, among its own colours.
        output::talk(words.to_string().trim_end());
    } else {
        output::talk_of_usage(&words.ansi().to_string());
    }
    std::process::exit(error.exit_code());
}

/// The error with its causes, each once, and the first hint on a separate line below.
fn in_words(error: &anyhow::Error) -> String {
    let (mut words, mut first_hint) = (String::new(), None);
    for cause in error.chain() {
        let cause = cause.to_string();
        let (cause, hint) =
            cause.split_once("\nhint: ").map_or((cause.as_str(), None), |(cause, hint)| (cause, Some(hint)));
        if words.is_empty() {
            cause.clone_into(&mut words);
        } else if !words.contains(cause) {
            words.push_str(": ");
            words.push_str(cause);
        }
        first_hint = first_hint.or_else(|| hint.map(str::to_owned));
    }
    first_hint.map_or(words.clone(), |hint| format!("{words}\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_named_once_and_the_hint_comes_last() {
        let error =
            anyhow!("no such file").context("cannot read /x: no such file; try another").context("not done");
        assert_eq!(in_words(&error), "not done: cannot read /x: no such file; try another");
        assert_eq!(in_words(&anyhow!("alone")), "alone");
        let hinted = anyhow!("no such file").context("cannot read /x\nhint: name a file");
        assert_eq!(in_words(&hinted), "cannot read /x: no such file\nhint: name a file");
    }
}
