//! `lowlat pipeline-role`: one process of a run, started by its master.

use super::matching;
use crate::{
    arguments::word,
    commands::{Subcommand, examples},
    exit::Exit,
    output,
};
use anyhow::Context;
use clap::{ArgMatches, Args, FromArgMatches};
use lowlat_node::{Join, Node, Overrun, Strategies, Wait, strategy::OnEachRecord};
use lowlat_pipeline::{
    PipelineOptions, PipelineParameters, PipelineRequest, ProcessRole, QuoteOverrun, check::Memory,
};
use lowlat_trade::{
    hosting::{StrategyBudget, StrategyHost},
    roles::{
        self,
        live::LiveOptions,
        md::{MdOptions, Source},
        td::TdOptions,
    },
    run::plan,
    scenario::{Scenario, Speed, Ticks},
    wire::{FeedAddress, FeedSocket, ReceiverOptions},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// Seed of the price walks, fixed so that every run has the same prices.
const SEED: u64 = 1;
/// Receive buffer of the feed's socket, bytes.
const FEED_BUFFER_BYTES: u64 = 8 << 20;
/// Records that may queue in a host, in all and for one strategy: tens of MiB, whatever the number of strategies.
const HOST_RECORDS: usize = 1 << 18;
const HOST_QUEUE_MIN: usize = 64;
const HOST_QUEUE_MAX: usize = 4096;
/// Longest duration of one call into a hosted strategy before it is moved out.
const HOST_CALL_NS_MAX: u64 = 20_000_000;

/// Beside the group of `pipeline`, whose declaration takes longer than all else at the start of a process.
pub const COMMAND: Subcommand =
    Subcommand { name: "pipeline-role", declare: PipelineRoleArgs::augment_args, run };

/// Run one process of the pipeline: md, td, both, a strategy, a strategy host, cached or a follower
#[derive(Debug, Args)]
#[command(hide = true)]
#[command(after_help = examples(&[("lowlat pipeline-role follower --number 1 --master SOCKET --run JSON", "Run a follower as a master starts it.")]))]
struct PipelineRoleArgs {
    /// Role to run
    #[arg(value_parser = word(ROLES.map(|(role, run)| (role.name(), (role, run)))))]
    role: (ProcessRole, Run),
    /// Number of the strategy, which is also its instrument, or of the follower
    #[arg(long, value_name = "N", default_value_t = 0)]
    number: u32,
    /// Socket of the master
    #[arg(long, value_name = "SOCKET")]
    master: PathBuf,
    /// Parameters and options of the run
    #[arg(long = "run", value_name = "JSON", value_parser = request)]
    request: PipelineRequest,
}

fn request(json: &str) -> Result<PipelineRequest, serde_json::Error> {
    serde_json::from_str(json)
}

/// What a process does in a run.
type Run = fn(&Started<'_>) -> anyhow::Result<()>;

const ROLES: [(ProcessRole, Run); 7] = [
    (ProcessRole::Md, md),
    (ProcessRole::Td, td),
    (ProcessRole::Platform, platform),
    (ProcessRole::Strategies, strategy),
    (ProcessRole::Host, host),
    (ProcessRole::Cached, cached),
    (ProcessRole::Follower, follower),
];

/// A process as its master started it.
struct Started<'a> {
    parameters: &'a PipelineParameters,
    options: &'a PipelineOptions,
    number: u32,
    wait: Wait,
    /// Socket of the master.
    socket: &'a Path,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let PipelineRoleArgs { role: (role, run), number, master, request } =
        PipelineRoleArgs::from_arg_matches(matches)?;
    let PipelineRequest { parameters, options } = &request;
    let wait = plan::wait(role, parameters);
    run(&Started { parameters, options, number, wait, socket: &master })?;
    Ok(Exit::Clean)
}

impl Started<'_> {
    fn join(&self, asked: &Join) -> anyhow::Result<Node> {
        Ok(Node::join(self.socket, asked)?)
    }

    /// Number of instruments of its market.
    fn instruments(&self) -> u32 {
        self.options.instruments(self.parameters)
    }
}

fn md(started: &Started<'_>) -> anyhow::Result<()> {
    if let Some(feed) = &started.options.feed {
        return live(started, feed.parse()?);
    }
    let (node, options) = join_md(started)?;
    match &options.source {
        Source::Simulated { scenario, seed } if started.parameters.has_md_threads => {
            roles::md_threads::run(node, scenario, *seed)?;
        }
        _ => _ = roles::md::run(node, &options)?,
    }
    Ok(())
}

fn live(started: &Started<'_>, address: FeedAddress) -> anyhow::Result<()> {
    let Started { parameters, options, wait, .. } = *started;
    let buffer_bytes = options.feed_buffer_bytes.unwrap_or(FEED_BUFFER_BYTES);
    let receiver = ReceiverOptions {
        address,
        interface: options.feed_interface.clone(),
        buffer_bytes: usize::try_from(buffer_bytes).unwrap_or(usize::MAX),
        wait,
    };
    let duration = Duration::try_from_secs_f64(parameters.duration_s)
        .context("duration_s is no duration\nhint: give a number of seconds above 0")?;
    let live = LiveOptions {
        receiver,
        symbols: None,
        instruments: started.instruments(),
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
    };
    let live = live
        .with_symbols(&options.symbols)
        .context("--symbols: a symbol has 1 to 8 characters\nhint: separate symbols with commas")?;
    // Before md joins, so that a wrong group is reported at once.
    let socket = FeedSocket::open(&live.receiver)?;
    roles::live::run(join_md_node(started)?, socket, &live)?;
    Ok(())
}

fn join_md(started: &Started<'_>) -> anyhow::Result<(Node, MdOptions)> {
    let source = source(started)?;
    let start_ns = started.options.replay.as_ref().map(|replay| replay.first_ns);
    let is_endless = started.parameters.is_endless();
    Ok((join_md_node(started)?, MdOptions { source, wait: started.wait, is_endless, start_ns }))
}

fn join_md_node(started: &Started<'_>) -> anyhow::Result<Node> {
    let mut node =
        started.join(&roles::md::join(started.instruments(), Memory::PLATFORM_STREAM_BYTES, started.wait))?;
    if let Some(cpu) = started.options.wake_core {
        node.publisher().wake_from(cpu).with_context(|| {
            format!("cannot wake from CPU {cpu}\nhint: name a CPU that this process may use")
        })?;
    }
    Ok(node)
}

fn source(started: &Started<'_>) -> anyhow::Result<Source> {
    let Started { parameters, options, .. } = *started;
    if let Some(replay) = &options.replay {
        // The run's clock has the speed.
        let ticks = Ticks::from_recording(Path::new(&replay.folder), true)?;
        return Ok(Source::Recorded { ticks: Arc::new(ticks), speed: Speed::default() });
    }
    if let Some(ticks) = &options.ticks {
        let speed = Speed::parse(&ticks.speed).with_context(|| format!("{}: no speed", ticks.speed))?;
        let ticks = Ticks::read(Path::new(&ticks.file), &options.symbols, options.channel.as_deref())?;
        return Ok(Source::Recorded { ticks: Arc::new(ticks), speed });
    }
    let scenario = match &options.scenario {
        Some(path) => Scenario::read(Path::new(path))?,
        None if parameters.is_endless() => Scenario::endless(started.instruments(), parameters.rate_per_s)
            .context("cannot make a schedule from instruments and rate\nhint: use numbers above 0")?,
        None => Scenario::at_rate(started.instruments(), parameters.rate_per_s, parameters.duration_s)
            .context(
                "cannot make a schedule from instruments, rate and duration\nhint: use numbers above 0",
            )?,
    };
    Ok(Source::Simulated { scenario, seed: SEED })
}

fn td(started: &Started<'_>) -> anyhow::Result<()> {
    let (node, options) = join_td(started)?;
    roles::td::run(node, &options)?;
    Ok(())
}

fn join_td(started: &Started<'_>) -> anyhow::Result<(Node, TdOptions)> {
    let Started { options, wait, .. } = *started;
    let rules = matching::rules(options, started.instruments());
    let gateway = options.gateway.as_deref().map(str::parse).transpose()?;
    let node = started.join(&roles::td::join(Memory::PLATFORM_STREAM_BYTES, &rules, wait))?;
    Ok((node, TdOptions { rules, gateway }))
}

fn platform(started: &Started<'_>) -> anyhow::Result<()> {
    // td last: the master counts the process as joined from then on.
    let (md, market) = join_md(started)?;
    let (td, exchange) = join_td(started)?;
    roles::platform::run(md, td, &market, &exchange)?;
    Ok(())
}

fn strategy(started: &Started<'_>) -> anyhow::Result<()> {
    let number = started.number;
    let node = join_strategies(started, ProcessRole::Strategies, &format!("s{number}"), &[number])?;
    let mut strategy = built_in(started, number);
    if let Some(store) = plan::store_in(started.options, started.socket) {
        lowlat_trade::cached::restore(&node, number, &store, &mut strategy)?;
    }
    lowlat_node::strategy::run(node, number, &mut strategy)?;
    Ok(())
}

/// Joins with the orders of these strategies.
fn join_strategies(
    started: &Started<'_>,
    role: ProcessRole,
    name: &str,
    numbers: &[u32],
) -> anyhow::Result<Node> {
    let capacity_bytes = match role {
        ProcessRole::Host => Memory::PLATFORM_STREAM_BYTES,
        _ => Memory::ORDERS_STREAM_BYTES,
    };
    let claimed = Strategies::Only(numbers.to_vec());
    let asked =
        lowlat_node::strategy::join(name, role.name(), claimed, numbers, capacity_bytes, started.wait);
    let overrun = match started.options.overrun {
        QuoteOverrun::Gap => Overrun::Gap,
        QuoteOverrun::Conflate => Overrun::Conflate,
    };
    started.join(&lowlat_node::strategy::with_overrun(asked, overrun))
}

/// The strategy of a run, with the work that was asked of it.
fn built_in(started: &Started<'_>, number: u32) -> OnEachRecord {
    let quotes_per_order = started.options.quotes_per_order.unwrap_or(1);
    let cost_ns = started.parameters.strategy_cost_ns;
    OnEachRecord { quotes_per_order, cost_ns, ..OnEachRecord::of(number) }
}

fn host(started: &Started<'_>) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..started.parameters.strategies).collect();
    let node = join_strategies(started, ProcessRole::Host, ProcessRole::Host.name(), &numbers)?;
    // Long enough that a strategy that is displaced now and then stays, short enough that one that
    // delays the others does not.
    let queue_max = (HOST_RECORDS / numbers.len().max(1)).clamp(HOST_QUEUE_MIN, HOST_QUEUE_MAX);
    let budget = StrategyBudget { call_ns_max: HOST_CALL_NS_MAX, queue_max, ..StrategyBudget::default() };
    let mut host = StrategyHost::new(budget);
    // Without those that were already moved out before the restart.
    for number in node.strategies().to_vec() {
        host.add(number, &[number], Box::new(built_in(started, number)))?;
    }
    roles::host::run(node, &mut host, &mut |number| {
        output::talk(&format!("strategy {number} is being moved out"));
    })?;
    Ok(())
}

fn cached(started: &Started<'_>) -> anyhow::Result<()> {
    let node = started.join(&roles::cached::join())?;
    let store =
        plan::store_in(started.options, started.socket).context("cached has no file for its state")?;
    roles::cached::run(node, &store, started.parameters.strategies, &mut |note| output::talk(note))?;
    Ok(())
}

fn follower(started: &Started<'_>) -> anyhow::Result<()> {
    let node = started.join(&roles::follower::join(started.number))?;
    roles::follower::run(node)?;
    Ok(())
}
