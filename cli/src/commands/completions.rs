//! `lowlat completions`: scripts that let a shell ask lowlat for the words that may come next.

use super::{Subcommand, cli, examples};
use crate::{exit::Exit, output, role};
use anyhow::Context as _;
use clap::{ArgMatches, Args, FromArgMatches};
use clap_complete::{
    CompleteEnv, Shell,
    engine::{
        ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
    },
    env::Shells,
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Profile;
use lowlat_pipeline::ProcessRole;
use lowlat_settings::Setting;
use lowlat_workload::{Idle, Place, Policy};
use std::ffi::OsStr;

pub const COMMAND: Subcommand =
    Subcommand { name: "completions", declare: CompletionsArgs::augment_args, run };

/// Variable in which the scripts name their shell.
const SHELL_VARIABLE: &str = "LOWLAT_COMPLETE";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat completions bash > /etc/bash_completion.d/lowlat", "Install completions for every user's bash.")]))]
struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = CompletionsArgs::from_arg_matches(matches)?;
    let name = arguments.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).with_context(|| format!("cannot complete commands in {name}"))?;
    let mut script = Vec::new();
    shell.write_registration(SHELL_VARIABLE, "lowlat", "lowlat", "lowlat", &mut script)?;
    output::print_plain(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Clean)
}

/// Answers a completion script and ends the process, if one asks.
pub fn answer() {
    if std::env::var_os(SHELL_VARIABLE).is_some() {
        CompleteEnv::with_factory(cli).var(SHELL_VARIABLE).complete();
    }
}

fn candidates<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> Vec<CompletionCandidate> {
    words.into_iter().map(|word| CompletionCandidate::new(word.as_ref())).collect()
}

/// Ids of the catalogue, each with its name.
pub fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let named = |setting: &Setting| CompletionCandidate::new(setting.id).help(Some(setting.name.into()));
        CATALOGUE.settings().map(named).collect()
    })
}

pub fn profiles() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(Profile::ALL.map(|profile| profile.to_string())))
}

/// Names of built-in roles, and files.
pub fn roles() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let named = role::ROLES.iter().map(|(name, _)| *name);
        let fitting = named.filter(|name| typed.to_str().is_some_and(|typed| name.starts_with(typed)));
        candidates(fitting).into_iter().chain(PathCompleter::file().complete(typed)).collect()
    })
}

/// Parts of a setting of workloads.
pub fn placements() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let places = Place::ALL.map(|place| format!("place={}", place.word()));
        let idle = Idle::ALL.map(|idle| format!("idle={}", idle.word()));
        let policies = Policy::ALL.map(|policy| format!("policy={}", policy.word()));
        candidates(places.into_iter().chain(idle).chain(policies))
    })
}

/// Roles of the pipeline that can be pinned.
pub fn pins() -> ArgValueCandidates {
    ArgValueCandidates::new(|| candidates(ProcessRole::PINNED.map(|role| format!("{role}="))))
}
