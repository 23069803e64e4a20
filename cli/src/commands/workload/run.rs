//! `lowlat workload run`.

use super::measure::{self, MeasureArgs, NamesArgs};
use crate::{
    commands::{completions, help},
    exit::Exit,
};
use clap::Args;
use lowlat_cores_run::workload::Order;
use lowlat_workload::{Purpose, Setting};

/// Count the operations per second of workloads
#[derive(Debug, Args)]
#[command(after_help = help(&format!("p50 and p99 are times of one operation: of every request of nginx; of lowlat's own workloads of a sample, with \
    one reading of the clock.\n\n{SETTINGS}\n\nExit codes: 0 clean, 2 error, 4 nothing was measured, 130 interrupted."), &[
    ("lowlat workload run pipe futex eventfd", "Measure three ways to wake a process."),
    ("lowlat workload run cache-base --copies 4,16 --under place=pack --under place=spread", "Measure copies in few and in many clusters."),
    ("lowlat workload run nginx --copies 1,4 --duration 5s", "Measure nginx over HTTPS with wrk."),
]))]
pub struct WorkloadRunArgs {
    #[command(flatten)]
    names: NamesArgs,
    /// Measure under this setting; may be repeated [default: place=kernel]
    #[arg(long, value_name = "SETTING", add = completions::placements())]
    under: Vec<Setting>,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// Explanation of settings, for the help of several commands.
pub const SETTINGS: &str = "A setting is a list of:\n  \
    place=kernel   the kernel chooses the CPUs, as without lowlat\n  \
    place=one      all processes on one CPU\n  \
    place=pack     a cluster (cores that share a second-level cache) is filled before the next\n  \
    place=spread   one process per cluster before a second in any; without clusters, one per core\n  \
    idle=none      no idle states: /dev/cpu_dma_latency is held at 0 (root)\n  \
    policy=batch   SCHED_BATCH; policy=fifo: SCHED_FIFO with priority 1\n\
    Other programs get the set of CPUs, and place their threads in it themselves.";

pub fn run(arguments: &WorkloadRunArgs) -> anyhow::Result<Exit> {
    measure::run("workload run", &arguments.measure, || {
        let default = [Setting::default()];
        let settings = if arguments.under.is_empty() { &default } else { arguments.under.as_slice() };
        let cells = arguments.names.cells(settings);
        Ok(Order { purpose: Purpose::Run, cells, ..Order::default() })
    })
}
