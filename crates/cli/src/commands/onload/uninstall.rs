//! `lowlat onload uninstall`.

use super::{Running, Subcommand, examples, perform};
use crate::output::Exit;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_net::onload::{session_over, uninstall};
use lowlat_sys::{Root, programs::Program, snapshot};

pub const COMMAND: Subcommand = Subcommand { name: "uninstall", declare, run };

/// Package managers: the query that lists package names, and the command that removes packages.
const MANAGERS: [([&str; 4], &[&str]); 2] = [
    (["rpm", "-qa", "--queryformat", "%{NAME}\\n"], &["rpm", "-e"]),
    (["dpkg-query", "-W", "-f", "${Package}\\n"], &["apt-get", "remove", "-y"]),
];

#[derive(Debug, Args)]
struct Arguments {
    /// Remove the driver even if your ssh session runs over the card
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    running: Running,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Unload and remove Onload, its driver and its packages")
        .after_help(examples(&[("lowlat onload uninstall --plan", "Show what would be removed.")]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let host = snapshot::read_without_knobs(&Root::live());
    let session = session_over(&host, &std::env::var("SSH_CONNECTION").unwrap_or_default());
    let (packages, manager) = packages();
    perform(&uninstall(&packages, manager, session, arguments.force)?, &arguments.running)
}

/// Returns the installed packages of the driver, with the command that removes them.
fn packages() -> (Vec<String>, &'static [&'static str]) {
    for (query, manager) in MANAGERS {
        let query = query.map(str::to_owned);
        let Some(names) = (Program { command: &query, folder: "", environment: &[] }).output() else {
            continue;
        };
        let of_driver =
            names.lines().filter(|name| name.contains("sfc")).map(str::to_owned).collect::<Vec<_>>();
        if !of_driver.is_empty() {
            return (of_driver, manager);
        }
    }
    (Vec::new(), &[])
}
