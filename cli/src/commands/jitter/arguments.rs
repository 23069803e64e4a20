//! Arguments of `lowlat jitter`.

use crate::{
    arguments::{cpus, duration, time_ns, word},
    commands::{
        help,
        outputs::{FileArgs, Form},
    },
    host::RoleArgs,
};
use clap::Args;
use lowlat_host::CpuSet;
use lowlat_jitter::gate::Gate;
use std::{path::PathBuf, time::Duration};

/// Measure every interruption: its length, its cause, and the setting that removes it
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 clean, 1 a limit of --gate is exceeded or --stop-on ended the run, 2 error, 4 none is, but the run cannot show that all are kept, 130 interrupted.", &[
    ("sudo lowlat jitter --duration 10s", "Measure every interruption of the isolated CPUs, with its cause."),
    ("sudo lowlat jitter --cpus 1-7,9-15 --duration 610s --threshold 100ns --when-quiet --gate guide-57037", "Repeat the guide's run as soon as the host is quiet, and compare it with the guide's result."),
    ("lowlat report render after.json --longest 3", "Show the timeline of the third longest interruption of that run."),
    ("sudo lowlat jitter --wake-every 1ms --fifo 80 --duration 60s", "Measure how late a sleeping thread runs, and why."),
    ("sudo lowlat jitter --stop-on 50us --save-trace jitter.dat --duration 24h", "Wait for an interruption of 50 us, and show who caused it; `trace-cmd report -i jitter.dat` shows the trace around it."),
    ("lowlat jitter --gate 'max<10us,rate<0.01/s'", "Fail a script if a CPU is not that quiet."),
    ("lowlat report render runs/*.json --gate guide-57037", "Show how many of these runs are as quiet as the guide's."),
    ("lowlat jitter --format sysjitter --raw jit | column -t", "Replace sysjitter in a script."),
]))]
pub struct JitterArgs {
    /// Measure these CPUs, with one sampler on each [default: isolated or tickless CPUs, else all this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub cpus: Option<CpuSet>,
    /// Measure for this long, such as 610s, 10m or 24h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration, allow_hyphen_values = true)]
    pub duration: Duration,
    /// Count gaps of at least this length, such as 100ns or 5us [default: five iterations of the slowest loop, at least
    /// 100ns]
    #[arg(long, value_name = "TIME", value_parser = time_ns, allow_hyphen_values = true)]
    pub threshold: Option<u64>,
    /// Measure the latency of wake-ups by a timer that expires this often, such as 1ms, as cyclictest does
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "threshold")]
    pub wake_every: Option<Duration>,
    /// End the run at the first interruption of at least this length, such as 50us, and show where it came from
    #[arg(long, value_name = "TIME", value_parser = time_ns, allow_hyphen_values = true, conflicts_with = "no_causes")]
    pub stop_on: Option<u64>,
    #[command(flatten)]
    pub real_time: RealTimeArgs,
    /// Do not trace causes
    #[arg(long)]
    pub no_causes: bool,
    #[command(flatten)]
    pub readiness: ReadinessArgs,
    #[command(flatten)]
    pub outputs: OutputArgs,
    /// Exit with code 1 if a limit is exceeded, such as 'max<10us,rate<0.01/s', or those of the built-in gate guide-57037
    #[arg(long, value_name = "LIMITS", value_parser = parse_gate)]
    pub gate: Option<Gate>,
    #[command(flatten)]
    pub role: RoleArgs,
}

/// Scheduling of the samplers.
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

/// Handling of a host that is not quiet.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ReadinessArgs {
    /// Wait until the host is quiet, then measure
    #[arg(long)]
    pub when_quiet: bool,
    /// Measure isolated CPUs even if the host is not quiet
    #[arg(long)]
    pub force: bool,
}

/// Outputs of a run.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print tables, the rows of sysjitter 1.4, or the result document
    #[arg(long, default_value = "text", value_parser = word([Form::TEXT, Form::SYSJITTER, Form::JSON]))]
    pub format: Form,
    /// Print the result document; the same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Print the timeline of the longest interruption, or of the N-th longest
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", allow_negative_numbers = true, value_parser = parse_rank, conflicts_with = "json")]
    pub longest: Option<usize>,
    /// Show every CPU and every cause; with --format sysjitter, also its verbose rows
    #[arg(long, short)]
    pub verbose: bool,
    /// Write every interruption to PREFIX.CPU in sysjitter's format
    #[arg(long, value_name = "PREFIX")]
    pub raw: Option<PathBuf>,
    /// Write the kernel's trace around the interruption of --stop-on to this file, for trace-cmd and KernelShark
    #[arg(long, value_name = "FILE", requires = "stop_on")]
    pub save_trace: Option<PathBuf>,
    /// Write the histograms to this file as an HdrHistogram log
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
    #[command(flatten)]
    pub files: FileArgs,
}

/// Parses the rank of an interruption.
pub fn parse_rank(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|rank| *rank > 0)
        .ok_or_else(|| "ranks start at 1, the longest interruption".to_owned())
}

/// Parses the limits of a gate.
pub fn parse_gate(text: &str) -> Result<Gate, String> {
    Gate::parse(text).map_err(|error| format!("{error}\n  {}\n  {}", error.text, error.pointer()))
}
