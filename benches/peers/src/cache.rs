//! Cores and caches: lowlat beside core-to-core-latency, and its workloads beside stress-ng.

use crate::{
    rounds::{in_rounds, print_ratio},
    tools,
};
use anyhow::Context;
use lowlat_results::ResultDocument;
use lowlat_workload::programs;
use std::path::Path;

/// Latency between cores beside core-to-core-latency, semaphores and messages beside stress-ng.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The pair of CPUs
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1])]
    cpus: Vec<u32>,
    /// Rounds, each of one run of every program
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Seconds of one run of a workload
    #[arg(long, default_value_t = 1)]
    seconds: u32,
}

/// Benchmarks of core-to-core-latency with lowlat's methods for the same.
const LATENCIES: [(&str, &str); 2] = [("cas", "1"), ("store", "2")];
/// Samples of core-to-core-latency; each has 1,000 iterations.
const SAMPLES: &str = "300";
/// Workloads of lowlat with their copies, and stressors for the same with their options.
const WORKLOADS: [(&str, &str, &str, &[&str]); 3] = [
    ("sem-posix-pause", "4", "sem", &["--sem", "1", "--sem-procs", "4"]),
    ("sem-sysv", "4", "sem-sysv", &["--sem-sysv", "1", "--sem-sysv-procs", "4"]),
    ("msg-sysv", "1", "msg", &["--msg", "1"]),
];

/// Runs all comparisons and prints them.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let lowlat = tools::lowlat()?;
    println!("{:<22} {}", "lowlat", lowlat.display());
    let [latency, stress] = ["core-to-core-latency", "stress-ng"].map(|name| {
        let found = tools::on_path(name);
        let shown = found.as_ref().map_or("not on PATH: left out".into(), |path| path.display().to_string());
        println!("{name:<22} {shown}");
        found
    });
    anyhow::ensure!(arguments.cpus.len() == 2, "--cpus takes two CPUs");
    for (method, bench) in LATENCIES {
        if let Some(latency) = &latency {
            let ours = || survey(&lowlat, &arguments.cpus, method);
            let theirs = || core_to_core(latency, &arguments.cpus, bench);
            compare(
                arguments.rounds,
                &format!("{method} latency in ns"),
                "core-to-core-latency",
                ours,
                theirs,
            )?;
        }
    }
    for (name, copies, stressor, options) in WORKLOADS {
        if let Some(stress) = &stress {
            let ours = || workload(&lowlat, name, copies, arguments.seconds);
            let theirs = || stress_ng(stress, stressor, options, arguments.seconds);
            compare(arguments.rounds, &format!("{name} per second"), "stress-ng", ours, theirs)?;
        }
    }
    Ok(())
}

fn compare(
    rounds: u32,
    what: &str,
    peer: &str,
    ours: impl FnMut() -> anyhow::Result<f64>,
    theirs: impl FnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<()> {
    let tell = |round, our: &f64, their: &f64| {
        println!("{what} round {round:>2}  {our:>12.1} | {their:>12.1}   (lowlat | {peer})");
    };
    let all = in_rounds(rounds, ours, theirs, tell)?;
    print_ratio(&format!("{what}, lowlat / {peer}"), &all);
    Ok(())
}

/// Median of a pair in nanoseconds.
fn survey(lowlat: &Path, cpus: &[u32], method: &str) -> anyhow::Result<f64> {
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    // 1: the kernel's topology differs.
    let document =
        document(lowlat, &["cache", "c2c", "--json", "--cpus", &list, "--method", method], &[0, 1])?;
    let measured = document.c2c().and_then(|of| of.record.pairs.first().cloned());
    Ok(measured.context("lowlat measured no pair")?.median_ns)
}

/// Mean of a pair in nanoseconds.
fn core_to_core(program: &Path, cpus: &[u32], bench: &str) -> anyhow::Result<f64> {
    let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let arguments = ["1000", SAMPLES, "--csv", "-b", bench, "-c", &list].map(str::to_owned);
    let output = tools::run(program, &arguments, &[0])?;
    mean(&String::from_utf8_lossy(&output.stdout))
}

/// The one number of a matrix of two CPUs, of which only the lower half is printed.
fn mean(csv: &str) -> anyhow::Result<f64> {
    let cells = csv.lines().flat_map(|line| line.split(','));
    let number = cells.map(str::trim).filter(|cell| !cell.is_empty()).find_map(|cell| cell.parse().ok());
    number.with_context(|| format!("core-to-core-latency printed no latency: {csv:?}"))
}

fn workload(lowlat: &Path, name: &str, copies: &str, seconds: u32) -> anyhow::Result<f64> {
    let time = format!("{seconds}s");
    let arguments =
        ["workload", "run", name, "--copies", copies, "--rounds", "1", "--duration", &time, "--json"];
    let document = document(lowlat, &arguments, &[0])?;
    let run = document.workload().and_then(|of| of.record.runs.first().copied());
    Ok(run.context("lowlat counted nothing")?.per_s)
}

fn stress_ng(program: &Path, stressor: &str, options: &[&str], seconds: u32) -> anyhow::Result<f64> {
    let seconds = seconds.to_string();
    let all = options.iter().copied().chain(["--timeout", &seconds, "--metrics-brief"]);
    let arguments: Vec<String> = all.map(str::to_owned).collect();
    let output = tools::run(program, &arguments, &[0])?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    let figures = programs::stress_ng(&text, stressor).map_err(anyhow::Error::msg)?;
    Ok(figures.per_s)
}

fn document(lowlat: &Path, arguments: &[&str], fine: &[i32]) -> anyhow::Result<ResultDocument> {
    let arguments: Vec<String> = arguments.iter().map(|of| (*of).to_owned()).collect();
    let output = tools::run(lowlat, &arguments, fine)?;
    serde_json::from_slice(&output.stdout).context("lowlat printed no document")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_latency_of_two_cpus_is_found() {
        assert!((mean(",\n62.25,\n").unwrap() - 62.25).abs() < 1e-9);
        assert!(mean(",\n,\n").is_err());
    }
}
