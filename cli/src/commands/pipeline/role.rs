//! `lowlat pipeline role`: one process of a run, started by its master.

use super::{
    run::{rate, speed},
    wire::WireArguments,
};
use crate::{arguments::word, commands::examples, exit::Exit, output};
use anyhow::Context;
use clap::Args;
use lowlat_pipeline::check::Memory;
use lowlat_trade::{
    node::{Node, Overrun, Strategies, Wait},
    roles::{
        self,
        live::LiveOptions,
        md::{MdOptions, Source},
        td::TdOptions,
    },
    scenario::{Scenario, Speed, Ticks},
    strategy::{
        OnEachRecord,
        host::{StrategyBudget, StrategyHost},
    },
    td::{Limits, Rules},
    wire::{FeedAddress, FeedSocket, ReceiverOptions},
};
use std::{path::PathBuf, sync::Arc, time::Duration};

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

/// Run one process of the pipeline: md, td, both, a strategy, a strategy host, cached or a follower
#[derive(Debug, Args)]
#[command(hide = true)]
#[command(after_help = examples(&[("lowlat pipeline role md --master SOCKET --strategies 80 --rate-per-s 800", "Run md as a master starts it.")]))]
pub struct PipelineRoleArgs {
    /// Role to run
    #[arg(value_parser = word(ROLES))]
    role: Role,
    /// Socket of the master
    #[arg(long, value_name = "SOCKET")]
    master: PathBuf,
    /// How the process waits
    #[arg(long, default_value = "parked", value_parser = word([("fast", Wait::Fast), ("parked", Wait::Parked), ("adaptive", Wait::Adaptive)]))]
    wait: Wait,
    /// Number of strategies in the run
    #[arg(long, value_name = "N", default_value_t = 1)]
    strategies: u32,
    /// Instrument of this strategy, which is also its number; or number of this follower
    #[arg(long, value_name = "N", default_value_t = 0)]
    instrument: u32,
    /// Quotes per second over all instruments
    #[arg(long, value_name = "PER_SECOND", default_value = "1", value_parser = rate)]
    rate_per_s: f64,
    /// How long to publish quotes, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    duration_s: f64,
    /// Publish the quotes of this scenario instead
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Run a thread for each instrument in md
    #[arg(long)]
    md_threads: bool,
    /// Publish recorded ticks from this file or recording instead
    #[arg(long, value_name = "FILE")]
    ticks: Option<PathBuf>,
    /// Publish ticks this many times as fast as recorded
    #[arg(long, value_name = "TIMES", default_value = "x1", value_parser = speed)]
    speed: Speed,
    /// What to do with quotes that a strategy is too slow for
    #[arg(long, default_value = "gap", value_parser = word([("gap", Overrun::Gap), ("conflate", Overrun::Conflate)]))]
    overrun: Overrun,
    /// CPU of the thread that wakes md's subscribers
    #[arg(long, value_name = "CPU")]
    wake_core: Option<u32>,
    /// Largest distance of a price from the middle of the last quote, in thousandths
    #[arg(long, value_name = "PER_MILLE")]
    price_deviation: Option<u32>,
    /// CPU time that a strategy computes per quote, in ns
    #[arg(long, value_name = "NS", default_value_t = 0)]
    strategy_cost_ns: u64,
    #[command(flatten)]
    wire: WireArguments,
    /// File of cached's state, which a restarted strategy reads
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// What a process does in a run.
type Role = fn(&PipelineRoleArgs) -> anyhow::Result<()>;

const ROLES: [(&str, Role); 7] = [
    ("md", md),
    ("td", td),
    ("platform", platform),
    ("strategy", strategy),
    ("host", host),
    ("cached", cached),
    ("follower", follower),
];

pub fn run(arguments: &PipelineRoleArgs) -> anyhow::Result<Exit> {
    (arguments.role)(arguments)?;
    Ok(Exit::Clean)
}

fn md(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    if let Some(address) = arguments.wire.feed {
        return live(arguments, address);
    }
    let (node, options) = join_md(arguments)?;
    match &options.source {
        Source::Simulated { scenario, seed } if arguments.md_threads => {
            roles::md_threads::run(node, scenario, *seed)?;
        }
        _ => _ = roles::md::run(node, &options)?,
    }
    Ok(())
}

fn live(arguments: &PipelineRoleArgs, address: FeedAddress) -> anyhow::Result<()> {
    let WireArguments { feed_interface, feed_buffer, .. } = &arguments.wire;
    let buffer_bytes = feed_buffer.unwrap_or(FEED_BUFFER_BYTES);
    let receiver = ReceiverOptions {
        address,
        interface: feed_interface.clone(),
        buffer_bytes: usize::try_from(buffer_bytes).unwrap_or(usize::MAX),
        wait: arguments.wait,
    };
    let duration = Duration::try_from_secs_f64(arguments.duration_s)
        .context("--duration-s is no duration\nhint: give a number of seconds above 0")?;
    let options = LiveOptions {
        receiver,
        symbols: None,
        instruments: arguments.strategies,
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
    };
    let options = options
        .with_symbols(&arguments.wire.symbols)
        .context("--symbols: a symbol has 1 to 8 characters\nhint: separate symbols with commas")?;
    // Before md joins, so that a wrong group is reported at once.
    let socket = FeedSocket::open(&options.receiver)?;
    let node = join_md_node(arguments)?;
    roles::live::run(node, socket, &options)?;
    Ok(())
}

fn join_md(arguments: &PipelineRoleArgs) -> anyhow::Result<(Node, MdOptions)> {
    let source = source(arguments)?;
    Ok((join_md_node(arguments)?, MdOptions { source, wait: arguments.wait }))
}

fn join_md_node(arguments: &PipelineRoleArgs) -> anyhow::Result<Node> {
    let asked = roles::md::join(arguments.strategies, Memory::PLATFORM_STREAM_BYTES, arguments.wait);
    let mut node = Node::join(&arguments.master, &asked)?;
    if let Some(cpu) = arguments.wake_core {
        node.publisher().wake_from(cpu).with_context(|| {
            format!("cannot wake from CPU {cpu}\nhint: name a CPU that this process may use")
        })?;
    }
    Ok(node)
}

fn source(arguments: &PipelineRoleArgs) -> anyhow::Result<Source> {
    if let Some(path) = &arguments.ticks {
        let ticks = Arc::new(Ticks::read(path, &arguments.wire.symbols, arguments.wire.channel.as_deref())?);
        return Ok(Source::Recorded { ticks, speed: arguments.speed });
    }
    if let Some(path) = &arguments.scenario {
        return Ok(Source::Simulated { scenario: Scenario::read(path)?, seed: SEED });
    }
    let scenario = Scenario::at_rate(arguments.strategies, arguments.rate_per_s, arguments.duration_s)
        .context(
            "cannot make a schedule from --strategies, --rate-per-s and --duration-s\nhint: use numbers above 0",
        )?;
    Ok(Source::Simulated { scenario, seed: SEED })
}

fn td(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    let (node, options) = join_td(arguments)?;
    roles::td::run(node, &options)?;
    Ok(())
}

fn join_td(arguments: &PipelineRoleArgs) -> anyhow::Result<(Node, TdOptions)> {
    let limits = Limits { price_deviation_max_per_mille: arguments.price_deviation, ..Limits::default() };
    let asked = roles::td::join(Memory::PLATFORM_STREAM_BYTES, &limits, arguments.wait);
    let node = Node::join(&arguments.master, &asked)?;
    let rules = Rules { instruments: arguments.strategies, fills: 1, limits };
    Ok((node, TdOptions { rules, gateway: arguments.wire.gateway }))
}

fn platform(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    // td last: the master counts the process as joined from then on.
    let (md, market) = join_md(arguments)?;
    let (td, exchange) = join_td(arguments)?;
    roles::platform::run(md, td, &market, &exchange)?;
    Ok(())
}

fn strategy(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    let number = arguments.instrument;
    let name = format!("s{number}");
    let own = [number];
    let asked = roles::strategy::join(
        &name,
        "strategies",
        Strategies::Only(own.to_vec()),
        &own,
        Memory::ORDERS_STREAM_BYTES,
        arguments.wait,
    );
    let node = Node::join(&arguments.master, &roles::strategy::with_overrun(asked, arguments.overrun))?;
    let mut strategy = built_in(arguments, number);
    if let Some(store) = &arguments.store {
        roles::strategy::restore(&node, number, store, &mut strategy)?;
    }
    roles::strategy::run(node, number, &mut strategy)?;
    Ok(())
}

/// The strategy of a run, with the work that was asked of it.
fn built_in(arguments: &PipelineRoleArgs, number: u32) -> OnEachRecord {
    let quotes_per_order = arguments.wire.quotes_per_order.unwrap_or(1);
    let cost_ns = arguments.strategy_cost_ns;
    OnEachRecord { quotes_per_order, cost_ns, ..OnEachRecord::of(number) }
}

fn host(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..arguments.strategies).collect();
    let claimed = Strategies::Only(numbers.clone());
    let asked = roles::strategy::join(
        "host",
        "host",
        claimed,
        &numbers,
        Memory::PLATFORM_STREAM_BYTES,
        arguments.wait,
    );
    let node = Node::join(&arguments.master, &roles::strategy::with_overrun(asked, arguments.overrun))?;
    // Long enough that a strategy that is displaced now and then stays, short enough that one that
    // delays the others does not.
    let queue_max = (HOST_RECORDS / numbers.len().max(1)).clamp(HOST_QUEUE_MIN, HOST_QUEUE_MAX);
    let budget = StrategyBudget { call_ns_max: HOST_CALL_NS_MAX, queue_max, ..StrategyBudget::default() };
    let mut host = StrategyHost::new(budget);
    // Without those that were already moved out before the restart.
    for number in node.strategies().to_vec() {
        host.add(number, &[number], Box::new(built_in(arguments, number)))?;
    }
    roles::host::run(node, &mut host, &mut |number| {
        output::talk(&format!("strategy {number} is being moved out"));
    })?;
    Ok(())
}

fn cached(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    let node = Node::join(&arguments.master, &roles::cached::join())?;
    let store = arguments.store.as_deref().context("missing --store FILE, the file of cached's state")?;
    roles::cached::run(node, store, arguments.strategies, &mut |note| output::talk(note))?;
    Ok(())
}

fn follower(arguments: &PipelineRoleArgs) -> anyhow::Result<()> {
    let node = Node::join(&arguments.master, &roles::follower::join(arguments.instrument))?;
    roles::follower::run(node)?;
    Ok(())
}
