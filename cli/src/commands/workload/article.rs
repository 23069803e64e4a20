//! `lowlat workload article`: published gains taken apart.

use super::measure::{self, MeasureArgs};
use crate::{commands::help, exit::Exit};
use clap::Args;
use lowlat_cores_run::workload::{self, Order};
use lowlat_workload::{
    Purpose,
    article::{PUBLISHED, Published, published},
};

/// Split the gains of the KeyarchOS article into placement and idle states
#[derive(Debug, Args)]
#[command(after_help = help("The article (Inspur, 2025) reports gains of a changed kernel on Intel Xeon 6: SPEC CPU up to +29 %, nginx +8.13 %, \
    semaphores 2.29x, messages 2.75x, context switches over pipes 12.21x. This runs such workloads with the kernel's \
    choice of CPUs, on one CPU, in one cluster and across clusters, each with idle states allowed and without \
    (cpu_dma_latency 0), and reports how much of each gain these two account for. It takes some minutes.\n\
    SPEC CPU is replaced by copies of three kernels: base for every processor of the architecture, peak for this \
    one (widest instructions; huge pages).\n\n\
    Exit codes: 0 clean, 2 error, 4 nothing was measured, 130 interrupted.", &[
    ("lowlat workload article --report article.html", "Measure everything and write a page."),
    ("lowlat workload article pipe", "Measure the context switches alone."),
    ("lowlat workload article semaphores messages pipe --programs", "Add stress-ng and UnixBench."),
]))]
pub struct WorkloadArticleArgs {
    /// Only these: spec-base, spec-peak, nginx, semaphores, messages, pipe [default: all]
    #[arg(value_name = "GAIN", value_parser = known)]
    gains: Vec<String>,
    /// Also run stress-ng and UnixBench's context1, where they are installed
    #[arg(long)]
    programs: bool,
    #[command(flatten)]
    measure: MeasureArgs,
}

fn known(key: &str) -> Result<String, String> {
    if published(key).is_some() {
        return Ok(key.to_owned());
    }
    let keys: Vec<&str> = PUBLISHED.iter().map(|one| one.key).collect();
    Err(format!("no such gain; expected one of {}", keys.join(", ")))
}

pub fn run(arguments: &WorkloadArticleArgs) -> anyhow::Result<Exit> {
    measure::run("workload article", &arguments.measure, || {
        let is_wanted =
            |one: &&Published| arguments.gains.is_empty() || arguments.gains.iter().any(|key| key == one.key);
        let mut order = Order { purpose: Purpose::Article, ..Order::default() };
        for gain in PUBLISHED.iter().filter(is_wanted) {
            for (name, copies) in gain.rows {
                let Some(workload) = workload::find(name) else { continue };
                // nginx is the article's own; others repeat what lowlat's workloads do.
                if workload.is_program() && !arguments.programs && gain.rows.len() > 1 {
                    continue;
                }
                order.cells.extend(
                    copies.iter().flat_map(|copies| gain.settings().map(move |of| (workload, *copies, of))),
                );
            }
        }
        Ok(order)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn every_published_row_is_a_workload_and_every_gain_is_in_the_help() {
        let mut command = WorkloadArticleArgs::augment_args(Command::new("article"));
        let help = command.render_long_help().to_string();
        for one in PUBLISHED {
            assert!(help.contains(one.key), "{}", one.key);
            for (name, _) in one.rows {
                assert!(workload::find(name).is_some(), "{name}");
            }
        }
    }
}
