//! `lowlat cache clock`: the clock of each core under load.

use crate::{
    arguments::{cpus, duration},
    commands::{help, outputs::OutputArgs},
    documents::Run,
    exit::Exit,
    host::RoleArgs,
    signals,
};
use clap::Args;
use lowlat_cache::clock::ClockMeasurement;
use lowlat_cores_run::cache::clock::{self, ClockOptions};
use lowlat_host::CpuSet;
use std::time::Duration;

/// Measure the clock of each core while all are busy
#[derive(Debug, Args)]
#[command(after_help = help("Shows which limit of the boost clock every core can keep: AMD Fmax Boost Limit of guide 57037. The load is a \
    chain of additions, which needs no performance counters. It is not your load: vector instructions lower \
    clocks further.\n\n\
    Exit codes: 0 clean, 2 error, 4 nothing was measured, 130 interrupted.", &[
    ("lowlat cache clock", "Measure every CPU for 10 s."),
    ("lowlat cache clock --cpus 1-7,9-15 --duration 5m", "Measure the isolated CPUs until they are warm."),
]))]
pub struct CacheClockArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// Keep these CPUs busy, and measure each [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Measure for this long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, allow_hyphen_values = true)]
    duration: Duration,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub fn run(arguments: &CacheClockArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(ClockMeasurement::COMMAND, labels, || arguments.role.read())?;
    let usable = super::usable(arguments.cpus.as_ref(), &run.host.snapshot)?;
    let options = ClockOptions { cpus: usable, duration: arguments.duration };
    let stop = signals::stop_flag()?;
    run.progress.say("measuring clocks");
    run.start();
    let record = clock::run(&run.host.root, &run.host.snapshot, &options, &stop)?;
    let is_measured = record.mhz_kept().is_some();
    let document = run.document(vec![ClockMeasurement::from(record).into()], &stop);
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_measured))
}
