//! `lowlat workload compare`.

use super::{
    measure::{self, MeasureArgs, NamesArgs},
    run::SETTINGS,
};
use crate::{
    commands::{completions, help},
    exit::Exit,
};
use clap::Args;
use lowlat_cores_run::workload::Order;
use lowlat_workload::{Purpose, Setting};

/// Compare two settings, in interleaved rounds
#[derive(Debug, Args)]
#[command(after_help = help(&format!("Each round runs every workload under both settings in random order. The ratio is that of B to A round by round, \
    with its 95 % interval; a side is faster only if the interval excludes 1.\n\n{SETTINGS}\n\n\
    Exit codes: 0 clean, 2 error, 4 nothing was compared, 130 interrupted."), &[
    ("lowlat workload compare pipe sem-sysv --a place=spread --b place=one", "Compare different CPUs with one CPU."),
    ("lowlat workload compare pipe --a place=kernel --b idle=none", "Find what idle states cost two processes that wake each other."),
]))]
pub struct WorkloadCompareArgs {
    #[command(flatten)]
    names: NamesArgs,
    /// Setting of side A
    #[arg(long, value_name = "SETTING", add = completions::placements(), default_value = "place=kernel")]
    a: Setting,
    /// Setting of side B
    #[arg(long, value_name = "SETTING", add = completions::placements())]
    b: Setting,
    #[command(flatten)]
    measure: MeasureArgs,
}

pub fn run(arguments: &WorkloadCompareArgs) -> anyhow::Result<Exit> {
    measure::run("workload compare", &arguments.measure, || {
        let b = arguments.b;
        anyhow::ensure!(
            arguments.a != b,
            "cannot compare {b} with itself\nhint: name another setting with --a or --b"
        );
        let cells = arguments.names.cells(&[arguments.a, b]);
        Ok(Order { purpose: Purpose::Compare, cells, ..Order::default() })
    })
}
