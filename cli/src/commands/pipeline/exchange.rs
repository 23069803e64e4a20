//! `lowlat pipeline exchange`: a simulated exchange.

use super::{
    now,
    run::{rate, speed},
};
use crate::{
    arguments::duration,
    commands::{help, outputs::OutputArgs},
    exit::Exit,
    output, signals,
};
use anyhow::{Context, ensure};
use clap::Args;
use lowlat_pipeline::ExchangeDocument;
use lowlat_pipeline_report::{exchange_html, exchange_text};
use lowlat_trade::{
    md::Feed,
    scenario::{Scenario, Speed, Ticks},
    wire::{
        FeedAddress, Format, GatewayAddress,
        exchange::{self, ExchangeEvent, ExchangeFeed, ExchangeOptions, ItchMessages},
    },
};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Seed of the price walks, fixed so that every run has the same prices.
const SEED: u64 = 1;

/// Simulate an exchange: publish quotes, accept orders, measure the pipeline from outside
#[derive(Debug, Args)]
#[command(after_help = help("Run it on another host, or in another network namespace, and connect a pipeline with\nlowlat pipeline run --feed FEED --gateway ADDRESS. docs/feed.md describes the formats.\n\nExit codes: 0 clean, 1 connections were closed for an error, 2 error, 130 interrupted.", &[
    ("lowlat pipeline exchange --feed udp:239.1.1.1:5000 --gateway tcp:10.0.0.1:5001", "Publish 800 quotes per second for 10 s, and answer orders."),
    ("lowlat pipeline exchange --feed udp:239.1.1.1:5000 --rate 100000 --feed-interface eth1", "Publish 100,000 quotes per second on one interface at once."),
]))]
pub struct PipelineExchangeArgs {
    /// Publish quotes to udp:GROUP:PORT, or messages of ITCH to itch:GROUP:PORT
    #[arg(long, value_name = "FEED")]
    feed: Option<FeedAddress>,
    /// Send to the group on this interface, by name or IPv4 address [default: by route]
    #[arg(long, value_name = "IF", requires = "feed")]
    feed_interface: Option<String>,
    /// Accept orders at tcp:ADDRESS:PORT; publishing starts when the first pipeline is ready
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<GatewayAddress>,
    /// Number of instruments
    #[arg(long, value_name = "N", default_value_t = 80, value_parser = clap::value_parser!(u32).range(1..=1000))]
    instruments: u32,
    /// Quotes per second over all instruments
    #[arg(long, value_name = "PER_SECOND", default_value = "800", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,
    /// How long to publish: 10s, 5m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, allow_hyphen_values = true)]
    duration: Duration,
    /// Publish recorded ticks from this file instead; see lowlat pipeline run --help
    #[arg(long, value_name = "FILE", conflicts_with_all = ["instruments", "rate", "duration"])]
    ticks: Option<PathBuf>,
    /// Publish the messages of this capture or file of ITCH 5.0 to itch:GROUP:PORT
    #[arg(long, value_name = "FILE", conflicts_with_all = ["instruments", "rate", "duration", "ticks"])]
    itch: Option<PathBuf>,
    /// Channel of a capture that has several: SESSION, GROUP, GROUP:PORT, :PORT or SESSION@GROUP:PORT
    #[arg(long, value_name = "CHANNEL")]
    channel: Option<String>,
    /// Publish ticks or messages this many times as fast as recorded
    #[arg(long, value_name = "TIMES", default_value = "x1", value_parser = speed)]
    speed: Speed,
    /// Leave limit orders open, for strategies that cancel and replace them; without, orders are filled
    /// at once
    #[arg(long, requires = "gateway")]
    no_fills: bool,
    /// Spin until a quote is due, so that each one has its datagram; without, quotes that are due
    /// together share one
    #[arg(long)]
    spin: bool,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub fn run(arguments: &PipelineExchangeArgs) -> anyhow::Result<Exit> {
    ensure!(
        arguments.feed.is_some() || arguments.gateway.is_some(),
        "nothing to do\nhint: give --feed, --gateway or both"
    );
    let content = content(arguments)?;
    let outputs = arguments.outputs.prepare()?;
    let stop = signals::stop_flag()?;
    let started_at = now();
    let options = ExchangeOptions {
        feed: arguments.feed,
        interface: arguments.feed_interface.clone(),
        gateway: arguments.gateway,
        content,
        speed: arguments.speed,
        has_no_fills: arguments.no_fills,
        is_spinning: arguments.spin,
    };
    let done = exchange::run(options, &stop, &|event| match event {
        ExchangeEvent::Listens(address) => output::talk(&format!("accepting orders at tcp:{address}")),
        ExchangeEvent::Starts => output::talk("publishing"),
    })?;
    let document = ExchangeDocument {
        started_at,
        // Relaxed: a lone flag.
        is_interrupted: stop.load(Ordering::Relaxed),
        ..done
    };
    let document = arguments.outputs.label(document);
    outputs.write_as(&document, &document.labels, exchange_text, exchange_html, || Ok(String::new()))?;
    Ok(Exit::of_run(document.is_interrupted, document.refused_total == 0))
}

fn content(arguments: &PipelineExchangeArgs) -> anyhow::Result<ExchangeFeed> {
    let is_itch = arguments.feed.is_some_and(|feed| feed.format == Format::Itch);
    let Some(path) = &arguments.itch else {
        ensure!(!is_itch, "--feed itch:GROUP:PORT needs messages\nhint: add --itch FILE");
        return Ok(ExchangeFeed::Quotes(quotes(arguments)?));
    };
    ensure!(is_itch, "--itch FILE is published to a feed of ITCH\nhint: give --feed itch:GROUP:PORT");
    let (messages, doubts) = ItchMessages::read(path, arguments.channel.as_deref())?;
    for doubt in doubts {
        output::talk(&format!("{}: {doubt}", path.display()));
    }
    Ok(ExchangeFeed::Itch(messages))
}

fn quotes(arguments: &PipelineExchangeArgs) -> anyhow::Result<Feed> {
    if let Some(path) = &arguments.ticks {
        let ticks = Ticks::read(path, &[], arguments.channel.as_deref())?;
        ticks.doubts().iter().chain(ticks.findings()).for_each(|doubt| output::talk(doubt));
        return Ok(Feed::recorded(Arc::new(ticks), arguments.speed));
    }
    let scenario = Scenario::at_rate(arguments.instruments, arguments.rate, arguments.duration.as_secs_f64())
        .context("cannot make a schedule\nhint: give --duration at least 1s")?;
    Ok(Feed::simulated(&scenario, SEED))
}
