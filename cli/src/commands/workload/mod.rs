//! `lowlat workload`: workloads under different placements, idle settings and policies.

mod article;
mod compare;
mod list;
mod measure;
mod run;

use super::{Subcommand, examples};
use crate::exit::Exit;
use clap::{ArgMatches, FromArgMatches, Subcommand as _};

pub const COMMAND: Subcommand = Subcommand { name: "workload", declare: Action::augment_subcommands, run };

/// Measure workloads under placements, idle settings and policies
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat workload list", "List the workloads, and what is missing for those that cannot run here."),
    ("lowlat workload compare pipe --a place=spread --b place=one", "Compare two placements of two processes that wake each other."),
    ("lowlat workload article", "Take published gains apart by placement and idle states."),
]))]
enum Action {
    List(list::WorkloadListArgs),
    Run(run::WorkloadRunArgs),
    Compare(compare::WorkloadCompareArgs),
    Article(article::WorkloadArticleArgs),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::List(arguments) => list::run(&arguments),
        Action::Run(arguments) => run::run(&arguments),
        Action::Compare(arguments) => compare::run(&arguments),
        Action::Article(arguments) => article::run(&arguments),
    }
}
