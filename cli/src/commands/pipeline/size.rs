//! `lowlat pipeline size`: how many strategies this host carries, and on which CPUs.

use super::{huge_pages::Reserved, live::Live, now, room, run::rate};
use crate::{
    arguments::{duration, time_ns, word},
    commands::{help, outputs::OutputArgs},
    exit::{Exit, Interrupted},
    host::RoleArgs,
    output,
    results::PreparedFile,
    signals,
};
use anyhow::ensure;
use clap::Args;
use lowlat_host_run::Root;
use lowlat_pipeline::{
    Mode, PipelineOptions,
    size::{CapacityGoal, StrategyGroup},
};
use lowlat_pipeline_report::{size_html, size_text};
use lowlat_trade::size::{Sizing, Wanted};
use std::{path::PathBuf, time::Duration};

/// Find how many strategies this host carries, and propose CPUs for them
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 a run kept the goal, 1 no run did, 2 error.", &[
    ("lowlat pipeline size --rate 10 --goal 500us", "Assume 10 quotes per second for each strategy."),
    ("lowlat pipeline size --strategy-cost 20us --utilisation 50", "Assume that a strategy computes for 20 us per quote."),
    ("sudo lowlat pipeline size --reserve-huge-pages", "Compare huge pages with 4 KiB pages, too."),
    ("lowlat pipeline size --mix 60x10,20x100 --write-pins placement.json", "Propose CPUs for two groups, for `lowlat pipeline run --pins`."),
]))]
pub struct PipelineSizeArgs {
    /// Quotes per second of each strategy
    #[arg(long, value_name = "PER_SECOND", default_value = "10", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,
    /// Highest acceptable p99 of tick to order
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time_ns)]
    goal: u64,
    /// Highest acceptable CPU use, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=95))]
    utilisation: u32,
    /// How processes wait
    #[arg(long, default_value = "parked", value_parser = word(Mode::WORDS))]
    mode: Mode,
    /// CPU time that each strategy computes per quote, in every run: 20us
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = time_ns)]
    strategy_cost: u64,
    /// Strategies of different rates to place, as COUNTxRATE: 60x10,20x100 [default: as many as fit, at --rate]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = group)]
    mix: Vec<StrategyGroup>,
    /// Numbers of strategies to run, to check the prediction
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', num_args = 1.., default_values_t = [10, 40, 80], value_parser = clap::value_parser!(u32).range(1..=1000))]
    check: Vec<u32>,
    /// Runs of each of these numbers
    #[arg(long, value_name = "COUNT", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Duration of each run
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration, allow_hyphen_values = true)]
    duration: Duration,
    /// Reserve huge pages to compare them with 4 KiB pages, and release them at the end
    #[arg(long)]
    reserve_huge_pages: bool,
    /// Run even if the figures would not be meaningful
    #[arg(long)]
    force: bool,
    /// Write the placement, for lowlat pipeline run --pins
    #[arg(long, value_name = "FILE")]
    write_pins: Option<PathBuf>,
    #[command(flatten)]
    role: RoleArgs,
    #[command(flatten)]
    outputs: OutputArgs,
}

/// Parses a group such as "60x10".
fn group(text: &str) -> Result<StrategyGroup, String> {
    let parts =
        text.split_once('x').and_then(|(count, each)| Some((count.parse::<u32>().ok()?, rate(each).ok()?)));
    match parts {
        Some((strategies @ 1..=1000, rate_per_s)) => Ok(StrategyGroup { strategies, rate_per_s }),
        _ => Err(format!(
            "\"{text}\": expected COUNTxRATE, such as 60x10 for 60 strategies of 10 quotes per second"
        )),
    }
}

pub fn run(arguments: &PipelineSizeArgs) -> anyhow::Result<Exit> {
    ensure!(!arguments.duration.is_zero(), "--duration is 0\nhint: give at least 1s");
    ensure!(arguments.goal > 0, "--goal is 0, which no order can meet\nhint: give a time such as 500us");
    let file = PreparedFile::prepare_if(arguments.write_pins.as_deref(), "--write-pins")?;
    let outputs = arguments.outputs.prepare()?;
    let host = arguments.role.read()?;
    let stop = signals::stop_flag()?;
    let (mut runner, facts) = super::runner::with_options(&PipelineOptions::default(), &stop)?;
    let (title, cpus) = lowlat_host_report::host_line(&host.snapshot);
    let wanted = wanted(arguments);
    let sizing = Sizing {
        wanted: &wanted,
        topology: &host.snapshot.topology,
        allocation: &host.allocation,
        facts: &facts,
        stop: &stop,
    };
    let pages = sizing.pages_needed();
    let reserved = (arguments.reserve_huge_pages && pages > 0).then(|| Reserved::pages(pages)).transpose()?;
    let facts_with_pages = reserved.is_some().then(|| room::read(&Root::live(), None));
    let sizing = Sizing { facts: facts_with_pages.as_ref().unwrap_or(&facts), ..sizing };
    room::talk("size", &sizing.doubts());
    let live = Live::new();
    let found = sizing.find(&format!("{title}: {cpus}"), now(), &mut runner, &mut |turn, now| {
        live.show_turn(turn, now);
    });
    live.finish();
    drop(reserved);
    let document = found?.ok_or_else(|| Interrupted("the costs of one strategy were measured".to_owned()))?;
    let document = arguments.outputs.label(document);
    outputs.write_as(&document, &document.labels, size_text, size_html, || Ok(String::new()))?;
    if let Some(file) = &file {
        let (note, shown) = (file.note(), file.path().display());
        file.write_json_lines(&document.placement)?;
        output::talk(&format!("{note}\nhint: lowlat pipeline run --pins {shown} uses it"));
    }
    Ok(Exit::of_run(document.is_interrupted, document.answer.checked.is_some()))
}

fn wanted(arguments: &PipelineSizeArgs) -> Wanted {
    Wanted {
        rate_per_s: arguments.rate,
        goal: CapacityGoal {
            p99_ns: arguments.goal as f64,
            utilisation: f64::from(arguments.utilisation) / 100.0,
        },
        mode: arguments.mode,
        strategy_cost_ns: arguments.strategy_cost,
        strategies: arguments.mix.clone(),
        checks: arguments.check.clone(),
        repeats: arguments.rounds,
        duration: arguments.duration,
        is_forced: arguments.force,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use lowlat_pipeline::ProcessRole;

    fn arguments(words: &[&str]) -> Result<PipelineSizeArgs, clap::Error> {
        let command = PipelineSizeArgs::augment_args(Command::new("size"));
        PipelineSizeArgs::from_arg_matches(&command.try_get_matches_from([&["size"], words].concat())?)
    }

    #[test]
    fn arguments_become_what_is_wanted() {
        let words = ["--rate", "10", "--goal", "5ms", "--strategy-cost", "20us", "--mix", "6x10,2x100"];
        let of = wanted(&arguments(&words).unwrap());
        assert_eq!((of.rate_per_s, of.goal.p99_ns, of.strategy_cost_ns), (10.0, 5e6, 20_000));
        assert_eq!((of.strategies.len(), of.checks.as_slice()), (2, [10, 40, 80].as_slice()));
        assert!((of.goal.utilisation - 0.6).abs() < 1e-9);
    }

    #[test]
    fn a_run_accepts_the_written_placement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("placement.json");
        let cpus = lowlat_host::CpuSet::first(8);
        let topology = lowlat_host::Topology { online: cpus.clone(), ..Default::default() };
        let allocation = lowlat_host::Allocation {
            housekeeping: lowlat_host::CpuSet::of(0),
            isolated: cpus.difference(&lowlat_host::CpuSet::of(0)),
            ..Default::default()
        };
        let groups = [StrategyGroup { strategies: 10, rate_per_s: 10.0 }];
        let placement = lowlat_pipeline::size::place(&topology, &allocation, &groups);
        assert_eq!(placement.pins[&ProcessRole::Strategies].len(), 10);
        PreparedFile::prepare(&path, "--write-pins").unwrap().write_json_lines(&placement).unwrap();
        assert_eq!(super::super::pins::read(&path).unwrap(), placement.pins);
    }

    #[test]
    fn groups_need_a_count_and_a_rate() {
        assert_eq!(group("60x10"), Ok(StrategyGroup { strategies: 60, rate_per_s: 10.0 }));
        for text in ["60", "0x10", "60x", "x", "60x-1"] {
            assert!(group(text).unwrap_err().contains("such as 60x10"), "{text}");
        }
        assert!(arguments(&["--utilisation", "100"]).is_err() && arguments(&["--goal", "5"]).is_err());
    }
}
