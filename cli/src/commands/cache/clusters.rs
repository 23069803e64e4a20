//! `lowlat cache clusters`: what the kernel does with clusters, and what filling one before the next costs.

use crate::{
    arguments::cpus,
    commands::{help, outputs::OutputArgs},
    documents::Run,
    exit::Exit,
    host::HostArgs,
    signals,
};
use anyhow::Context;
use clap::{Args, value_parser};
use lowlat_cache::clusters::{ClustersMeasurement, ClustersRecord, Filling};
use lowlat_cores_run::cache::clusters;
use lowlat_host::CpuSet;

/// Show whether the kernel spreads load over clusters, and measure what filling one costs
#[derive(Debug, Args)]
#[command(after_help = help("A cluster is a group of cores that share a second-level cache. Copies of three jobs run in one cluster and then in \
    one cluster each: random reads and updates of memory that fits in the cache alone but not together, and arithmetic \
    as a control. Hosts without clusters compare SMT siblings or last-level caches. With --root, only the kernel \
    is judged.\n\n\
    Exit codes: 0 clean, 2 error, 4 nothing was compared, 130 interrupted.", &[
    ("lowlat cache clusters", "Judge the kernel, and measure."),
    ("lowlat cache clusters --root capture.tar.gz", "Judge the kernel of a captured host."),
    ("lowlat cache clusters --cpus 2-15 --report clusters.html", "Measure some CPUs, and write a page."),
]))]
pub struct CacheClustersArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Compare placements on these CPUs [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Measure both placements this many times
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub fn run(arguments: &CacheClustersArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(ClustersMeasurement::COMMAND, labels, || arguments.host.read())?;
    let stop = signals::stop_flag()?;
    run.start();
    let host = &run.host;
    let record = if host.root.is_live() {
        match Filling::choose(
            &host.snapshot.topology,
            &super::usable(arguments.cpus.as_ref(), &host.snapshot)?,
        ) {
            Err(why) => ClustersRecord { why_not: Some(why), ..ClustersRecord::default() },
            Ok(filling) => {
                let mut say = |round| {
                    run.progress.say(format!("measuring round {} of {}", round + 1, arguments.rounds));
                };
                clusters::run(&host.root, &filling, arguments.rounds, &stop, &mut say)?
            }
        }
    } else {
        ClustersRecord::default()
    };
    let document = run.document(vec![ClustersMeasurement::from(record).into()], &stop);
    let record = &document.clusters().context("the document contains no clusters")?.record;
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, record.why_not.is_none()))
}
