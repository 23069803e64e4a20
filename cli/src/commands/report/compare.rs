//! `lowlat report compare`.

use super::{named, read};
use crate::{
    arguments::PageArgs,
    commands::{help, outputs::RunFiles},
    exit::Exit,
    labels::WithLabels,
    output,
};
use anyhow::ensure;
use clap::Args;
use lowlat_results::compare::{Comparison, Limit, LimitVerdict, SideBySide};
use std::path::PathBuf;

/// Compare documents: before and after a change, or two hosts
#[derive(Debug, Args)]
#[command(after_help = help("Harm is judged by whole seconds: the time lost, interruptions of 10 us or longer, and the longest of each second. \
    Each needs a difference beyond 10 %, and Holm's procedure keeps the chance of a false word at 5 %. Each side \
    needs 11 seconds. Settings that differ are ranked by the time of the causes that they remove or bring, then by \
    impact. Workloads that two documents of `lowlat workload run` have in common are compared too, by the ratio of their rates and \
    the interval that their rounds allow. A document without jitter and workloads is compared by its settings only.\n\n\
    --fail-if-worse takes one percentage for all quantities, or names them: lost, count>10us, max, p99.9 (of time). \
    It fails only if a quantity is shown to be beyond its limit.\n\n\
    Exit codes: 0 clean, 1 worse by more than --fail-if-worse, 2 error, 4 too short, or at another load, for --fail-if-worse, or no \
    workload in common.", &[
    ("lowlat report compare before.json after.json", "Show what a change did, and which settings explain it."),
    ("lowlat report compare good.json bad.json --report twins.html", "Find the setting that makes one of two hosts worse."),
    ("lowlat report compare --pairs a1.json b1.json a2.json b2.json", "Pool the runs of two interleaved settings."),
    ("lowlat report compare last-week.json today.json --fail-if-worse 5%", "Fail a script if the host became less quiet."),
]))]
pub struct ReportCompareArgs {
    /// Compare these documents; each later one is compared with the first
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Pool the documents of each side, given as before, after, before, after and so on
    #[arg(long)]
    pairs: bool,
    /// Exit with code 1 if a document is worse than the first by more than this: 5%, or lost=5%,max=20%
    #[arg(long, value_name = "LIMIT")]
    fail_if_worse: Option<Limit>,
    /// Print JSON on stdout
    #[arg(long)]
    json: bool,
    /// Write the HTML page to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
}

pub fn run(arguments: &ReportCompareArgs) -> anyhow::Result<Exit> {
    let page = RunFiles::prepare_page(arguments.report.as_deref(), &arguments.language)?;
    let documents = read(&arguments.files, &arguments.language.labels)?;
    ensure!(
        !arguments.pairs || documents.len().is_multiple_of(2),
        "--pairs takes documents in pairs, before and after: {} were given\nhint: name as many documents after as before",
        documents.len()
    );
    if arguments.fail_if_worse.is_some() {
        for (name, document) in &documents {
            ensure!(
                document.jitter().is_some(),
                "cannot check --fail-if-worse: {name} contains no jitter measurement\nhint: name documents that `lowlat jitter` \
                 or `lowlat assess` wrote"
            );
        }
    }
    let compared = SideBySide::of(&named(&documents), arguments.pairs, arguments.fail_if_worse.as_ref())?;
    let labels = arguments.language.labels.of_all(documents.iter().map(|(_, document)| &document.labels));
    let document = output::Document::of("lowlat-compare", &compared);
    output::print_as(arguments.json, &WithLabels { labels: &labels, result: &document }, |width| {
        lowlat_results_report::side_by_side_text(&compared, width)
    })?;
    page.write_page(&labels, || lowlat_results_report::side_by_side_html(&compared))?;
    let is_empty = |of: &Comparison| of.workloads.as_ref().is_some_and(Vec::is_empty) && !of.has_rates();
    let has = |verdict| compared.limits.iter().any(|limit| limit.verdict == verdict);
    let is_unshown = has(LimitVerdict::TooShort) || has(LimitVerdict::SurroundingsDiffered);
    let is_judged = !is_unshown && !compared.comparisons.iter().any(is_empty);
    Ok(if has(LimitVerdict::Worse) { Exit::Findings } else { Exit::of_measurement(false, is_judged) })
}
