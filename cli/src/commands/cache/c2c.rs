//! `lowlat cache c2c`: latency between cores.

use crate::{
    arguments::{cpus, word},
    commands::{help, outputs::OutputArgs},
    documents::{self, Run},
    exit::Exit,
    host::RoleArgs,
    output, signals,
};
use anyhow::Context as _;
use clap::{Args, builder::PossibleValue};
use lowlat_cache::c2c::{C2cMeasurement, C2cRecord, LatencyMatrix, Method, SurveyLimits};
use lowlat_catalogue::CATALOGUE;
use lowlat_cores_run::cache::c2c;
use lowlat_host::{CpuSet, HostSnapshot, topology::Topology};
use lowlat_host_run::{Root, snapshot};
use std::path::{Path, PathBuf};

/// Fewest CPUs of a survey.
const CPUS_MIN: usize = 2;

/// Measure the latency between cores, and compare their groups with the kernel's topology
#[derive(Debug, Args)]
#[command(after_help = help("Up to 32 CPUs, every pair is measured. Above, the groups of CPUs are found from a sample of the pairs, at most a \
    twentieth on hosts of 512 CPUs, and random pairs show how well the others are predicted.\n\
    Both CPUs of a pair are busy for some milliseconds, so other programs on them disturb the figures, and are \
    disturbed.\n\n\
    Exit codes: 0 clean, 1 the kernel's topology differs from what was measured, 2 error, 4 nothing was \
    measured, 130 interrupted.", &[
    ("lowlat cache c2c", "Measure all CPUs."),
    ("lowlat cache c2c --cpus 2-9 --method cas", "Measure compare-exchange between eight CPUs."),
    ("lowlat cache c2c --import epyc.csv", "Group the CPUs of a matrix that somebody published."),
    ("lowlat cache c2c --report c2c.html", "Write a page with a heat map."),
]))]
pub struct CacheC2cArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// Measure these CPUs [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Pass the cache line this way [default: store; cas for --import]
    #[arg(long, value_parser = word(WAYS.map(|(word, method, help)| (PossibleValue::new(word).help(help), method))))]
    method: Option<Method>,
    /// Measure every pair, however many CPUs there are
    #[arg(long)]
    all: bool,
    /// Group the times of this file instead: a matrix that core-to-core-latency --csv printed on any host
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cpus", "all", "result", "report"])]
    import: Option<PathBuf>,
    /// Compare the imported matrix with this host: a directory with proc/ and sys/, or a capture file
    #[arg(long, value_name = "DIR|FILE", requires = "import")]
    root: Option<PathBuf>,
    #[command(flatten)]
    outputs: OutputArgs,
}

/// How a cache line is passed.
const WAYS: [(&str, Method, &str); 4] = [
    ("store", Method::Store, "Each CPU stores to a line of its own and loads the other's"),
    ("cas", Method::CompareExchange, "Both CPUs change one line by compare-exchange"),
    ("read", Method::Read, "One CPU loads lines that the other has modified"),
    ("invalidate", Method::Invalidate, "One CPU stores to lines that the other has read"),
];

pub fn run(arguments: &CacheC2cArgs) -> anyhow::Result<Exit> {
    if let Some(file) = &arguments.import {
        return import(file, arguments);
    }
    let outputs = arguments.outputs.prepare()?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(C2cMeasurement::COMMAND, labels, || arguments.role.read())?;
    let measured = chosen(arguments.cpus.as_ref(), &run.host.snapshot)?;
    let stop = signals::stop_flag()?;
    let mut limits = SurveyLimits::default();
    if arguments.all {
        limits.cpus_max_of_all_pairs = measured.len();
    }
    run.progress.say(format!("measuring {} CPUs", measured.len()));
    run.start();
    let topology = &run.host.snapshot.topology;
    let method = arguments.method.unwrap_or_default();
    let record = c2c::run(&run.host.root, (&measured, topology), method, limits, &stop, &mut |tries| {
        if tries.is_multiple_of(100) {
            run.progress.say(format!("measured {tries} times"));
        }
    })?;
    let document = run.document(vec![C2cMeasurement::from(record).into()], &stop);
    let measurement = document.c2c().context("the document contains no latencies between cores")?;
    let (record, topology) = (&measurement.record, &document.snapshot.topology);
    outputs.write(&document)?;
    let differs = !lowlat_cache::c2c::differences(record, topology).is_empty();
    Ok(match Exit::of_measurement(document.is_interrupted, !record.levels.is_empty()) {
        Exit::Clean | Exit::NotJudged if differs => Exit::Findings,
        exit => exit,
    })
}

/// Shows the groups of a matrix. It is compared with a host's topology only if the user names that host.
fn import(file: &Path, arguments: &CacheC2cArgs) -> anyhow::Result<Exit> {
    let shown = file.display();
    let hint = "hint: name a file that `core-to-core-latency --csv` printed";
    let text = documents::text_of(file).with_context(|| format!("cannot read {shown}\n{hint}"))?;
    let matrix = LatencyMatrix::parse(&text)
        .map_err(|error| anyhow::anyhow!("cannot read {shown}: {error}\n{hint}"))?;
    let topology = match &arguments.root {
        Some(root) => snapshot::read(&Root::open(root)?, CATALOGUE).topology,
        None => Topology::default(),
    };
    let record =
        C2cRecord { method: arguments.method.unwrap_or(Method::CompareExchange), ..matrix.survey(&topology) };
    output::print_as(arguments.outputs.json, &output::Document::of("lowlat-cache-c2c", &record), |width| {
        lowlat_cores_report::c2c_text(&record, &topology, width)
    })?;
    let differs = arguments.root.is_some() && !lowlat_cache::c2c::differences(&record, &topology).is_empty();
    Ok(if differs { Exit::Findings } else { Exit::Clean })
}

/// The CPUs to measure, two at least.
fn chosen(asked: Option<&CpuSet>, host: &HostSnapshot) -> anyhow::Result<CpuSet> {
    let usable = super::usable(asked, host)?;
    anyhow::ensure!(
        usable.len() >= CPUS_MIN,
        "cannot measure CPUs {usable}: a pair takes two CPUs\nhint: name more with --cpus"
    );
    Ok(usable)
}
