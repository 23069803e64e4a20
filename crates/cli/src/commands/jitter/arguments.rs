//! What users say to `lowlat jitter`.

use crate::{
    arguments::{cpus, duration, time_ns},
    commands::examples,
    host::HostArgs,
};
use clap::{Args, Command, ValueEnum};
use lowlat_host::CpuSet;
use lowlat_jitter::gate::Gate;
use std::{path::PathBuf, time::Duration};

/// Every word of the command.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag that users type")]
pub struct Arguments {
    /// CPUs to measure, one sampler on each [default: the isolated or tickless ones, else all this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,
    /// How long: 610s, 10m, 24h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Shortest gap that counts as an interruption: 100ns, 5us [default: five turns of the slowest loop, 100ns at least]
    #[arg(long, value_name = "TIME", value_parser = time_ns, allow_hyphen_values = true)]
    pub threshold: Option<u64>,
    #[command(flatten)]
    pub real_time: RealTimeArgs,
    /// Do not look for causes: no tracing on this host
    #[arg(long)]
    pub no_causes: bool,
    #[command(flatten)]
    pub readiness: ReadinessArgs,
    #[command(flatten)]
    pub outputs: OutputArgs,
    /// Fail with exit code 1 when a limit is broken: 'max<10us,rate<0.01/s'
    #[arg(long, value_name = "LIMITS", value_parser = parse_gate)]
    pub gate: Option<Gate>,
    /// Show a document that was written before instead of measuring
    #[arg(long, value_name = "FILE", conflicts_with_all = ["cpus", "threshold", "fifo", "rr", "no_causes", "wait", "force", "raw"])]
    pub from: Option<PathBuf>,
    /// Hold documents against each other instead of measuring; more pairs of them are pooled
    #[arg(long, num_args = 2.., value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["from", "gate", "explain", "hlog", "raw"])]
    pub compare: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub host: HostArgs,
}

/// The samplers' scheduling.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct RealTimeArgs {
    /// Run the samplers under SCHED_FIFO at this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub fifo: Option<u8>,
    /// Run the samplers under SCHED_RR at this priority, 1 to 99
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub rr: Option<u8>,
}

/// What to do about a host that is not quiet.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ReadinessArgs {
    /// Wait until the host is quiet
    #[arg(long)]
    pub wait: bool,
    /// Measure isolated CPUs even though the host is not quiet
    #[arg(long)]
    pub force: bool,
}

/// What comes out of it, and where.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// What to print on stdout: tables for people, the rows of sysjitter 1.4, or the result document
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Print the result document on stdout, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print what happened in the longest interruption, or in the N-th longest
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", allow_negative_numbers = true, value_parser = parse_rank, conflicts_with = "json")]
    pub explain: Option<usize>,
    /// Show every CPU and every cause; with --format sysjitter also its verbose rows
    #[arg(long, short)]
    pub verbose: bool,
    /// Write every interruption to PREFIX.CPU in sysjitter's format
    #[arg(long, value_name = "PREFIX")]
    pub raw: Option<PathBuf>,
    /// Write the histograms as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    /// Write the page for people
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the document for programs; --from and --compare read it
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
}

/// Forms of the result on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    // Plain comments: with help of their own the values would stretch the whole help to two lines an option.
    // Tables for people.
    Text,
    // The summary rows of sysjitter 1.4, for scripts written for it.
    Sysjitter,
    // The result document.
    Json,
}

impl OutputArgs {
    /// The form that is wanted.
    pub fn form(&self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

fn parse_rank(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|rank| *rank > 0)
        .ok_or_else(|| "ranks begin at 1, the longest interruption".to_owned())
}

fn parse_gate(text: &str) -> Result<Gate, String> {
    Gate::parse(text).map_err(|error| format!("{error}\n  {}\n  {}", error.text, error.pointer()))
}

/// The command with its help.
pub fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Measure every interruption: its length, its cause, and the setting that removes it")
        .after_help(examples(&[
            ("sudo lowlat jitter --duration 10s", "every interruption of the isolated CPUs, with its cause"),
            (
                "sudo lowlat jitter --cpus 1-7,9-15 --duration 610s --wait --result after.json",
                "the guide's run, once the host is quiet",
            ),
            (
                "lowlat jitter --from after.json --explain 3",
                "the timeline of the third longest interruption of that run",
            ),
            ("lowlat jitter --compare before.json after.json", "what a change of settings did"),
            (
                "lowlat jitter --gate 'max<10us,rate<0.01/s'",
                "exit code 1 when a CPU is not that quiet, for scripts",
            ),
            ("lowlat jitter --format sysjitter --raw jit | column -t", "in place of sysjitter"),
        ]))
}
