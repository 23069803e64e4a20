//! `lowlat pipeline role`: one process of a run, started by its master.

use super::run::rate;
use crate::{
    commands::{Subcommand, examples},
    output::{self, Exit},
};
use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use lowlat_model::pipeline::check::Memory;
use lowlat_trade::{
    node::{Join, Node, Wait},
    roles::{
        self,
        cached::CachedOptions,
        md::{MdOptions, Source},
        strategy::StrategyOptions,
        td::TdOptions,
    },
    scenario::Scenario,
    strategy::{
        OnEachRecord,
        host::{Budget, Host},
    },
    td::{Limits, Rules},
};
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "role", declare, run };

/// The same walks of prices in every run.
const SEED: u64 = 1;
/// Records that may wait for one strategy of a host.
const HOST_QUEUE: usize = 4096;

#[derive(Debug, Args)]
struct Arguments {
    /// Which process
    #[arg(value_enum)]
    role: Role,
    /// The socket of its master
    #[arg(long, value_name = "SOCKET")]
    master: PathBuf,
    /// How it waits
    #[arg(long, value_enum, default_value_t = WaitWord::Parked)]
    wait: WaitWord,
    /// How many strategies the run has
    #[arg(long, value_name = "N", default_value_t = 1)]
    strategies: u32,
    /// The strategy's instrument, which is its number too
    #[arg(long, value_name = "N", default_value_t = 0)]
    instrument: u32,
    /// Quotes per second over all instruments
    #[arg(long, value_name = "RATE", default_value = "1", value_parser = rate)]
    rate_per_s: f64,
    /// How long quotes are published, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    duration_s: f64,
    /// Where cached keeps its state
    #[arg(long, value_name = "FILE", default_value = "cached.sqlite")]
    store: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    Md,
    Td,
    Strategy,
    Host,
    Cached,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum WaitWord {
    Fast,
    Parked,
    Adaptive,
}

impl From<WaitWord> for Wait {
    fn from(word: WaitWord) -> Self {
        match word {
            WaitWord::Fast => Self::Fast,
            WaitWord::Parked => Self::Parked,
            WaitWord::Adaptive => Self::Adaptive,
        }
    }
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .hide(true)
        .about("Run one process of the pipeline: md, td, a strategy, a strategy host or cached")
        .after_help(examples(&[(
            "lowlat pipeline role md --master SOCKET --strategies 80 --rate-per-s 800",
            "as its master starts it",
        )]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let wait = Wait::from(arguments.wait);
    match arguments.role {
        Role::Md => md(&arguments, wait),
        Role::Td => td(&arguments, wait),
        Role::Strategy => strategy(&arguments, wait),
        Role::Host => host(&arguments, wait),
        Role::Cached => cached(&arguments),
    }?;
    Ok(Exit::Clean)
}

fn join(master: &Path, join: &Join) -> anyhow::Result<Node> {
    Ok(Node::join(master, join)?)
}

fn md(arguments: &Arguments, wait: Wait) -> anyhow::Result<()> {
    let scenario = scenario(arguments.strategies, arguments.rate_per_s, arguments.duration_s)
        .context("--strategies, --rate-per-s and --duration-s make no schedule; give numbers above 0")?;
    let node =
        join(&arguments.master, &roles::md::join(arguments.strategies, Memory::PLATFORM_STREAM_BYTES, wait))?;
    let options = MdOptions { source: Source::Simulated { scenario, seed: SEED }, wait };
    roles::md::run(node, &options)?;
    Ok(())
}

/// A schedule that holds no more quotes than fit into its time: whole rounds over all instruments, or one round over as
/// many instruments as get a quote in it.
fn scenario(instruments: u32, rate_per_s: f64, duration_s: f64) -> Option<Scenario> {
    let ticks = (rate_per_s * duration_s + 1e-6).floor().max(1.0);
    let rounds = (ticks / f64::from(instruments)).floor();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "below the number of instruments"
    )]
    let (instruments, rounds) = if rounds < 1.0 { (ticks as u32, 1.0) } else { (instruments, rounds) };
    Scenario::at_rate(instruments, rate_per_s, rounds * f64::from(instruments) / rate_per_s)
}

fn td(arguments: &Arguments, wait: Wait) -> anyhow::Result<()> {
    let node = join(&arguments.master, &roles::td::join(Memory::PLATFORM_STREAM_BYTES, wait))?;
    let rules = Rules { instruments: arguments.strategies, fills: 1, limits: Limits::default() };
    roles::td::run(node, &TdOptions { rules })?;
    Ok(())
}

fn strategy(arguments: &Arguments, wait: Wait) -> anyhow::Result<()> {
    let number = arguments.instrument;
    let name = format!("s{number}");
    let own = [number];
    let asked = roles::strategy::join(&name, "strategies", &own, &own, Memory::ORDERS_STREAM_BYTES, wait);
    let node = join(&arguments.master, &asked)?;
    roles::strategy::run(node, &StrategyOptions { number }, &mut OnEachRecord::of(number))?;
    Ok(())
}

fn host(arguments: &Arguments, wait: Wait) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..arguments.strategies).collect();
    let asked =
        roles::strategy::join("host", "host", &numbers, &numbers, Memory::PLATFORM_STREAM_BYTES, wait);
    let node = join(&arguments.master, &asked)?;
    // These strategies are known to be quick: one that looks slow was displaced, and stays.
    let mut host = Host::new(Budget { call_ns_max: u64::MAX, queue_max: HOST_QUEUE, ..Budget::default() });
    for number in numbers {
        host.add(number, &[number], Box::new(OnEachRecord::of(number)))?;
    }
    roles::host::run(node, &mut host, &mut |number| {
        output::talk(&format!("strategy {number} is to be moved out"));
    })?;
    Ok(())
}

fn cached(arguments: &Arguments) -> anyhow::Result<()> {
    let node = join(&arguments.master, &roles::cached::join())?;
    roles::cached::run(node, &CachedOptions::new(arguments.store.clone()), &mut |note| output::talk(note))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_fits_its_time() {
        let of = |instruments, rate, duration| {
            let scenario = scenario(instruments, rate, duration).unwrap();
            (scenario.instruments, scenario.records())
        };
        assert_eq!(of(80, 800.0, 10.0), (80, 8_000));
        assert_eq!(of(80, 0.2, 5.0), (1, 1), "one tick in 5 s, and not 80 in 400 s");
        assert_eq!(of(80, 8.0, 3.0), (24, 24));
        assert_eq!(of(80, 32.0, 4.0), (80, 80), "whole rounds only");
        assert_eq!(of(1, 500.0, 5.0), (1, 2_500));
    }
}
