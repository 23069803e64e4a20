//! `lowlat report compare`.

use super::{named, read};
use crate::{
    arguments::PageArgs,
    commands::{Subcommand, examples},
    labels::WithLabels,
    output::{self, Exit},
    results::{OutputFile, write_all},
};
use anyhow::ensure;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_result::compare::{LimitVerdict, SideBySide};
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "compare", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Compare these documents; each later one is compared with the first
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Exit with code 1 if a document is shown to be worse than the first by more than this, such as 5%
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    fail_if_worse: Option<f64>,
    /// Print JSON on stdout
    #[arg(long)]
    json: bool,
    /// Write the HTML page to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Compare documents: before and after a change, or two hosts")
        .after_help(format!(
            "Rates have exact 95 % intervals, and differences of percentiles have bootstrap intervals. Settings that differ \
             are ranked by the time of the causes that they remove or bring, then by impact. A document without a jitter \
             measurement is compared by its settings only.\n\n\
             --fail-if-worse checks the rate of interruptions and the percentiles over time. It fails only if a whole \
             interval is beyond the limit.\n\n\
             Exit codes: 0 clean, 1 worse by more than --fail-if-worse, 2 error.\n\n{}",
            examples(&[
                ("lowlat report compare before.json after.json", "Show what a change did, and which settings explain it."),
                (
                    "lowlat report compare good.json bad.json --html twins.html",
                    "Find the setting that makes one of two hosts worse.",
                ),
                (
                    "lowlat report compare last-week.json today.json --fail-if-worse 5%",
                    "Fail a script if the host became less quiet.",
                ),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let page = arguments.html.as_deref().map(|path| OutputFile::prepare(path, "--html")).transpose()?;
    let documents = read(&arguments.files, &arguments.language.labels)?;
    let mut compared = SideBySide::of(&named(&documents))?;
    if let Some(margin) = arguments.fail_if_worse {
        for (name, document) in &documents {
            ensure!(
                document.jitter().is_some(),
                "cannot check --fail-if-worse: {name} contains no jitter measurement\nhint: name documents that `lowlat jitter` \
                 or `lowlat assess` wrote"
            );
        }
        compared.check(margin);
    }
    let labels = arguments.language.labels.of_all(documents.iter().map(|(_, document)| &document.labels));
    if arguments.json {
        let document = output::Document::of("lowlat-compare", &compared);
        output::print_json(&WithLabels { labels: &labels, result: &document })?;
    } else {
        output::print(&lowlat_report::side_by_side_text(&compared, output::width()))?;
    }
    write_all(page.iter().map(|file| {
        (file, Ok(arguments.language.page(lowlat_report::side_by_side_html(&compared), &labels)))
    }))?;
    let is_worse = compared.limits.iter().any(|limit| limit.verdict == LimitVerdict::Worse);
    Ok(if is_worse { Exit::Findings } else { Exit::Clean })
}

/// Parses a percentage such as 5% or 0.5 %, and returns a share.
fn margin(text: &str) -> Result<f64, String> {
    let number =
        text.trim().strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    number
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("\"{text}\" is not a percentage; write one such as 5%"))
}

#[cfg(test)]
mod tests {
    use super::margin;

    #[test]
    fn margins_are_percentages() {
        assert_eq!((margin("5%"), margin("0.5 %"), margin("0%")), (Ok(0.05), Ok(0.005), Ok(0.0)));
        for wrong in ["5", "-5%", "five%", "NaN%", "%", ""] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
