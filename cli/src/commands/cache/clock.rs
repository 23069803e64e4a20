//! `lowlat cache clock`: the clock of each core under load.

use crate::{
    arguments::{cpus, duration},
    commands::help,
    exit::Exit,
    host::RoleArgs,
    output,
    progress::Progress,
    signals,
};
use clap::Args;
use lowlat_cores_run::cache::clock::{self, ClockOptions};
use lowlat_host::CpuSet;
use std::{sync::atomic::Ordering, time::Duration};

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
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &CacheClockArgs) -> anyhow::Result<Exit> {
    let progress = Progress::new();
    progress.say("reading the host");
    let host = arguments.role.read()?;
    let usable = super::usable(arguments.cpus.as_ref(), &host.snapshot)?;
    let options = ClockOptions { cpus: usable, duration: arguments.duration };
    let stop = signals::stop_flag()?;
    progress.say("measuring clocks");
    let record = clock::run(&host.root, &host.snapshot, &options, &stop)?;
    progress.finish();
    output::print_as(arguments.json, &output::Document::of("lowlat-cache-clock", &record), |width| {
        lowlat_cores_report::clock_text(&record, width)
    })?;
    // Relaxed: set by the signal handler; the threads have been joined.
    Ok(Exit::of_measurement(stop.load(Ordering::Relaxed), record.mhz_kept().is_some()))
}
