//! The subcommands. A new one is a file here and a line in [`COMMANDS`].

mod assess;
mod audit;
mod bios;
mod cache;
pub mod completions;
mod cpus;
#[cfg(test)]
mod handbook;
mod host;
mod import;
mod jitter;
mod journal;
mod man;
mod net;
mod onload;
mod outputs;
pub mod pipeline;
mod report;
mod run;
pub mod standing;
mod tune;
pub mod watch;
mod workload;

use crate::exit::Exit;
use clap::{
    ArgMatches, Command,
    error::{ContextKind, ContextValue},
};
use std::ffi::OsStr;

pub struct Subcommand {
    pub name: &'static str,
    /// Declares the help, arguments and examples. Completions and man pages come from the same declaration.
    pub declare: fn(Command) -> Command,
    pub run: fn(&ArgMatches) -> anyhow::Result<Exit>,
}

/// Every subcommand, in help order.
pub const COMMANDS: &[Subcommand] = &[
    assess::COMMAND,
    host::COMMAND,
    audit::COMMAND,
    cpus::COMMAND,
    bios::COMMAND,
    jitter::COMMAND,
    watch::COMMAND,
    journal::COMMAND,
    report::COMMAND,
    tune::COMMAND,
    import::COMMAND,
    net::COMMAND,
    cache::COMMAND,
    workload::COMMAND,
    onload::COMMAND,
    pipeline::COMMAND,
    pipeline::role::COMMAND,
    run::COMMAND,
    completions::COMMAND,
    man::COMMAND,
];

/// Declaration of the whole command line.
pub fn cli() -> Command {
    cli_of(COMMANDS)
}

/// Declaration of what the first word of a command line needs: one subcommand, such as that of the processes of a run,
/// of which there are a thousand, or else all of them.
pub fn cli_for(word: Option<&OsStr>) -> Command {
    let typed = COMMANDS.iter().find(|command| word == Some(OsStr::new(command.name)));
    cli_of(typed.map_or(COMMANDS, std::slice::from_ref))
}

/// Options of other programs, and lowlat's for the same thing.
const TIPS: &[(&str, &str)] = &[
    ("--hex", "mask"),
    ("--html", "report"),
    ("--output", "out"),
    ("--seconds", "duration"),
    ("--time", "duration"),
];

/// Adds what was meant to an error about a command line: lowlat's own option for one of another program, or the
/// subcommand that takes the word. Hidden subcommands are never meant.
pub fn with_tip(mut error: clap::Error) -> clap::Error {
    let cli = cli();
    let command = std::env::args().skip(1).fold(&cli, |at, word| at.find_subcommand(word).unwrap_or(at));
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) {
        let tip = TIPS.iter().find(|(other, _)| other == given).map(|(_, own)| *own);
        if let Some(own) = tip.filter(|own| command.get_arguments().any(|of| of.get_long() == Some(own))) {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{own}")));
        }
    }
    if let Some(ContextValue::Strings(mut similar)) = error.remove(ContextKind::SuggestedSubcommand) {
        similar.retain(|name| !command.find_subcommand(name).is_some_and(Command::is_hide_set));
        if !similar.is_empty() {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(similar));
        }
    }
    if let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) {
        let takes = |command: &&Command| {
            let first = command.get_positionals().next();
            first.is_some_and(|first| {
                first.get_possible_values().iter().any(|value| value.matches(given, false))
            })
        };
        let mut shown = command.get_subcommands().filter(|member| !member.is_hide_set());
        if let Some(member) = shown.find(takes) {
            let meant = format!("{} {given}", member.get_name());
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
        }
    }
    error
}

/// The exit codes of all commands.
pub const EXIT_CODES: &str = "Exit codes: 0 clean, 1 findings or differences, 2 error, 4 nothing found, but less than half \
                              could be checked, 130 interrupted. `tune verify` and `run` have more; see their help.";

fn cli_of(members: &[Subcommand]) -> Command {
    Command::new("lowlat")
        .bin_name("lowlat")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Turn a stock Linux server into a proven low-latency trading host")
        .arg_required_else_help(true)
        .subcommands(members.iter().map(|member| (member.declare)(Command::new(member.name))))
        .after_help(format!(
            "Without a command, lowlat shows where this host stands and what to run next.\n\n{EXIT_CODES}\nTo start, run: \
             lowlat assess"
        ))
}

/// Formats a command's notes, the last of which are its exit codes, and its examples for its help.
fn help(notes: &str, lines: &[(&str, &str)]) -> String {
    format!("{notes}\n\n{}", examples(lines))
}

/// Formats a command's examples for its help, each with a description.
fn examples(lines: &[(&str, &str)]) -> String {
    let shown = lines.iter().map(|(line, what)| format!("  {line}\n      {what}"));
    format!("Examples:\n{}", shown.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_declares_its_command_and_any_other_all() {
        let names = |word: Option<&str>| -> Vec<String> {
            cli_for(word.map(OsStr::new)).get_subcommands().map(|c| c.get_name().to_owned()).collect()
        };
        assert_eq!(names(Some("pipeline")), ["pipeline"]);
        for other in [None, Some("help"), Some("pipelin"), Some("--help")] {
            assert_eq!(names(other).len(), COMMANDS.len(), "{other:?}");
        }
    }

    #[test]
    fn every_command_has_an_about_an_example_and_help_for_each_argument() {
        cli().debug_assert();
        for command in cli().get_subcommands() {
            let name = command.get_name();
            assert!(command.get_about().is_some(), "{name} has no about");
            let has_example =
                |c: &Command| c.get_after_help().is_some_and(|help| help.to_string().contains("Examples:"));
            assert!(has_example(command), "{name} has no example");
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{name} {} has no help", argument.get_id());
            }
        }
    }

    /// Words for one thing, of which users type the first.
    const SYNONYMS: [&[&str]; 12] = [
        &["huge-pages", "hugepages", "large-pages"],
        &["duration", "time", "length", "seconds", "run-for"],
        &["dry-run", "show-only", "simulate", "no-act"],
        &["pins", "pin", "placement", "affinity"],
        &["cpus", "cores", "cpu-list"],
        &["report", "html", "page"],
        &["result", "output", "json-file"],
        &["rounds", "repeats", "repeat", "runs"],
        &["since", "after", "start"],
        &["until", "before-time", "end"],
        &["timeout", "wait-max", "time-limit"],
        &["quiet", "silent"],
    ];

    /// The options of a command and those below it that help shows: long name, command, and the kinds of value,
    /// where a directory is a file.
    fn options(command: &Command, words: &str, found: &mut Vec<(String, String, Vec<String>)>) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long() else { continue };
            let takes = argument.get_action().takes_values();
            let names = argument.get_value_names().filter(|_| takes).unwrap_or_default();
            let kinds = names
                .iter()
                .flat_map(|name| name.split('|'))
                .map(|kind| if kind == "DIR" { "FILE" } else { kind }.to_owned())
                .collect();
            found.push((long.to_owned(), words.to_owned(), kinds));
        }
        for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
            options(below, &format!("{words} {}", below.get_name()), found);
        }
    }

    #[test]
    fn one_thing_has_one_name_and_one_name_one_type() {
        let mut found = Vec::new();
        options(&cli(), "lowlat", &mut found);
        assert!(found.len() > 500, "{}", found.len());
        let mut faults = Vec::new();
        for (long, words, kinds) in &found {
            // A pinned certificate, not CPUs.
            if long == "pin" && words.starts_with("lowlat bios") {
                continue;
            }
            let others = SYNONYMS.iter().find(|names| names[1..].contains(&long.as_str()));
            faults.extend(others.map(|names| format!("{words} --{long} is --{} elsewhere", names[0])));
            let is_alike = |other: &[String]| {
                other.is_empty() == kinds.is_empty()
                    && (kinds.is_empty() || other.iter().any(|kind| kinds.contains(kind)))
            };
            let other = found.iter().find(|(name, _, other)| name == long && !is_alike(other));
            faults.extend(
                other.map(|(_, at, other)| format!("--{long} takes {kinds:?} in {words}, {other:?} in {at}")),
            );
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn what_only_the_running_host_can_show_takes_no_other_root() {
        let mut found = Vec::new();
        options(&cli(), "lowlat", &mut found);
        let takes = |command: &str, option: &str| {
            found.iter().any(|(long, words, _)| long == option && words == &format!("lowlat {command}"))
        };
        for command in [
            "jitter",
            "net pingpong client",
            "net stream client",
            "net compare",
            "net choose",
            "cache clock",
            "cache false-sharing",
            "workload run",
            "pipeline size",
        ] {
            assert!(takes(command, "role") && !takes(command, "root"), "{command}");
        }
        assert!(takes("audit", "root") && takes("cache c2c", "root"));
    }
}
