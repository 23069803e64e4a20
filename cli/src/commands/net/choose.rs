//! `lowlat net choose`: the cheapest waiting mode that meets a goal.

use super::pingpong::{server_with_port, size_list};
use crate::{
    arguments::{duration, time_ns},
    commands::{examples, outputs::OutputArgs},
    documents::Run,
    exit::Exit,
    host::RoleArgs,
    signals,
};
use anyhow::Context;
use clap::{Args, builder::PossibleValuesParser};
use lowlat_host::CpuId;
use lowlat_net::{
    choose::{ChoiceRecord, ChoiceStudy, Goal, Mode, NetChoiceMeasurement},
    pingpong::{Scenario, Transport},
};
use lowlat_net_run::{self as net, ChooseEvent, ChooseOptions};
use std::time::Duration;

/// Fewest round trips of a run: its p99 needs 368.
const ITERATIONS_MIN: u64 = 400;
/// Shortest busy polling unless the user names another, in microseconds.
const BUSY_POLL_US_MIN: f64 = 50.0;

/// Find the cheapest waiting mode that meets a latency and CPU goal
///
/// Tries blocking, blocking without idle states, busy polling, epoll busy polling, suspended interrupts and spinning
/// in turn against `lowlat net server`, and measures half round trips and the CPU time of both ends. Names the mode
/// with the least CPU time whose p99 and CPU time meet the goal. Exits with 1 if none does.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat net choose 10.0.0.2 --p99 20us --cpu-share 50%", "Find the cheapest mode at 10,000 messages/s."),
    ("lowlat net choose 10.0.0.2 tcp --p99 8us --rate 500 --size 128", "Find it for TCP, at the rate and size of an order gateway."),
]))]
pub struct NetChooseArgs {
    /// The server: a name or address, with :PORT unless it is 12048
    #[arg(value_name = "HOST")]
    host: String,
    /// Transport of the messages
    #[arg(value_name = "TRANSPORT", default_value = "udp", value_parser = PossibleValuesParser::new(["udp", "tcp"]))]
    transport: String,
    /// Goal: 99th percentile of half round trips, at most
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    p99: u64,
    /// Goal: share of one CPU that the thread of each end uses, at most
    #[arg(long, value_name = "PERCENT", default_value = "100%", value_parser = share)]
    cpu_share: f64,
    /// Messages per second; latency counts from the time when each was due
    #[arg(long, value_name = "PER_SECOND", default_value_t = 10_000.0)]
    rate: f64,
    /// Size of the messages in bytes
    #[arg(long, value_name = "BYTES", default_value = "32")]
    size: String,
    /// How long the kernel polls the NIC's queue per call in the polling modes [default: the time between two messages, at least 50us]
    #[arg(long, value_name = "TIME", value_parser = time_ns)]
    busy_poll: Option<u64>,
    /// Rounds, each of one run of every mode; 6 or more
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = clap::value_parser!(u32).range(6..=1_000))]
    rounds: u32,
    /// Measure one mode in a round for this long
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
    duration: Duration,
    /// CPU of the client [default: an isolated one, else the highest]
    #[arg(long, value_name = "CPU")]
    client_cpu: Option<CpuId>,
    /// CPU of the server [default: an isolated one of its host, else the highest]
    #[arg(long, value_name = "CPU")]
    server_cpu: Option<CpuId>,
    /// Measure even if the figures would not be meaningful, and mark the result
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    outputs: OutputArgs,
    #[command(flatten)]
    role: RoleArgs,
}

/// Parses a share of a CPU: "50%" or "50".
fn share(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.strip_suffix('%').unwrap_or(text).trim().parse().ok();
    let percent = number.filter(|percent| *percent > 0.0 && *percent <= 100.0);
    percent
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("\"{text}\" is not a share of a CPU; write one from 1% to 100%, such as 50%"))
}

pub fn run(arguments: &NetChooseArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let scenario = scenario(arguments)?;
    // Each mode is checked before the host is read.
    for mode in Mode::ALL {
        mode.applied_to(&scenario).check().map_err(net::PingpongError::from)?;
    }
    let (command, labels) = (NetChoiceMeasurement::COMMAND, &arguments.outputs.files.language.labels);
    let mut run = Run::begin(command, labels, || arguments.role.read())?;
    let options = ChooseOptions {
        goal: Goal { p99_ns: arguments.p99, cpu_share: arguments.cpu_share },
        scenario,
        server: server_with_port(&arguments.host),
        rounds: arguments.rounds,
        is_forced: arguments.force,
    };
    let stop = signals::stop_flag()?;
    run.progress.stand_still();
    run.start();
    let record = net::run_choose(&run.host.root, &options, &stop, &|event| {
        run.progress.say(in_words(event, arguments.rounds));
    })?;
    let document = run.document(vec![NetChoiceMeasurement::from(record).into()], &stop);
    let record = &document.net_choice().context("the document contains no choice of a mode")?.record;
    outputs.write(&document)?;
    Ok(if document.is_interrupted { Exit::Interrupted } else { exit(record) })
}

/// A choice that meets the goal is clean.
fn exit(record: &ChoiceRecord) -> Exit {
    let study = ChoiceStudy::of(record);
    if study.choice.is_some_and(|choice| choice.meets) && !study.is_unsafe {
        Exit::Clean
    } else {
        Exit::Findings
    }
}

fn scenario(arguments: &NetChooseArgs) -> anyhow::Result<Scenario> {
    let sizes = size_list(&arguments.size, "--size")?;
    anyhow::ensure!(sizes.len() == 1, "--size takes one size\nhint: run the command once for each size");
    let interval_us = (1e6 / arguments.rate).clamp(BUSY_POLL_US_MIN, 1e6);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped above")]
    let spanning_us = interval_us.ceil() as u32;
    let busy_poll_us = arguments.busy_poll.map(|ns| u32::try_from(ns / 1_000).unwrap_or(u32::MAX));
    Ok(Scenario {
        transport: Transport::of_word(&arguments.transport).unwrap_or(Transport::Udp),
        sizes,
        busy_poll_us: busy_poll_us.unwrap_or(spanning_us),
        time_ms_max: u64::try_from(arguments.duration.as_millis()).unwrap_or(u64::MAX),
        iterations_min: ITERATIONS_MIN,
        warm_up_ms: 50,
        rate_per_s: Some(arguments.rate),
        client_cpu: arguments.client_cpu,
        server_cpu: arguments.server_cpu,
        ..Scenario::default()
    })
}

fn in_words(event: &ChooseEvent, rounds: u32) -> String {
    match event {
        ChooseEvent::Checks(mode) => format!("checking {mode}"),
        ChooseEvent::Measures { round, mode } => format!("round {} of {rounds}: {mode}", round + 1),
        ChooseEvent::Repeats(round) => format!("round {} again: the control moved", round + 1),
    }
}
