//! `lowlat cpus`: the chosen CPUs in the format that another tool expects.

use super::{Subcommand, help};
use crate::{exit::Exit, host::HostArgs, output};
use clap::{ArgMatches, Args, FromArgMatches, ValueEnum};
use lowlat_host::CpuSet;

pub const COMMAND: Subcommand = Subcommand { name: "cpus", declare: CpusArgs::augment_args, run };

/// Print the housekeeping or isolated CPUs as a list, a mask or a systemd set
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 done, 2 error.", &[
    ("lowlat cpus", "Print both sets of CPUs."),
    ("lowlat cpus isolated", "Print the list for nohz_full= and rcu_nocbs=."),
    ("lowlat cpus housekeeping --mask", "Print the mask for smp_affinity."),
    ("lowlat cpus housekeeping --why", "Explain how the CPUs were chosen."),
]))]
struct CpusArgs {
    /// CPUs to print [default: both sets, each with its name]
    #[arg(value_enum)]
    set: Option<Set>,
    #[command(flatten)]
    spelling: Spelling,
    /// Also print each step of the choice and its reason
    #[arg(long)]
    why: bool,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Set {
    /// CPUs for the kernel, services and interrupts
    Housekeeping,
    /// CPUs for trading threads
    Isolated,
    /// CPUs without load balancing; the same as isolated
    Nobalance,
}

#[derive(Debug, Args)]
#[group(multiple = false)]
struct Spelling {
    /// Print a kernel CPU list, such as 1-7,9-15 (default)
    #[arg(long)]
    list: bool,
    /// Print a hexadecimal mask with a comma every 32 bits, such as fefe
    #[arg(long)]
    mask: bool,
    /// Print systemd's format, such as 1-7 9-15
    #[arg(long)]
    systemd: bool,
    /// Print TuneD's group.ksoftirqd= line: SCHED_FIFO 2 on the set
    #[arg(long)]
    ksoftirqd: bool,
    /// Print TuneD's group.rcub= line: SCHED_FIFO 4 on the set
    #[arg(long)]
    rcub: bool,
    /// Print JSON: every format, the steps and the warnings
    #[arg(long)]
    json: bool,
}

impl Spelling {
    fn spell(&self, set: &CpuSet) -> String {
        match self {
            Self { mask: true, .. } => set.to_mask(),
            Self { systemd: true, .. } => set.to_systemd(),
            Self { ksoftirqd: true, .. } => format!("0:f:2:{}:ksoftirqd.*", set.to_mask()),
            Self { rcub: true, .. } => format!("0:f:4:{}:rcub.*", set.to_mask()),
            _ => set.to_list(),
        }
    }
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = CpusArgs::from_arg_matches(matches)?;
    let host = arguments.host.read_silently()?;
    let allocation = &host.allocation;
    let sets: Vec<(&str, &CpuSet)> = match arguments.set {
        None => vec![("housekeeping", &allocation.housekeeping), ("isolated", &allocation.isolated)],
        Some(Set::Housekeeping) => vec![("housekeeping", &allocation.housekeeping)],
        Some(Set::Isolated | Set::Nobalance) => vec![("isolated", &allocation.isolated)],
    };
    if arguments.spelling.json {
        let formats = |set: &CpuSet| {
            serde_json::json!({
                "list": set.to_list(), "mask": set.to_mask(), "systemd": set.to_systemd(), "count": set.len(),
            })
        };
        let mut shown = match sets.as_slice() {
            [(_, set)] => formats(set),
            _ => sets.iter().map(|(name, set)| (*name, formats(set))).collect(),
        };
        shown["steps"] = allocation.steps.clone().into();
        shown["warnings"] = allocation.warnings.clone().into();
        host.print_json(&output::Document::of("lowlat-cpus", shown))?;
        return Ok(Exit::Clean);
    }
    let spell = |set: &CpuSet| arguments.spelling.spell(set);
    let mut text = match sets.as_slice() {
        [(_, set)] => spell(set),
        _ => sets.iter().map(|(name, set)| format!("{name:14}{}", spell(set))).collect::<Vec<_>>().join("\n"),
    };
    if arguments.why {
        text.push_str("\n\n");
        text.push_str(&lowlat_host_report::choice_text(allocation, output::width()));
    }
    output::print_plain(&text)?;
    host.role_line().iter().for_each(|line| output::talk(line));
    if !arguments.why {
        allocation.warnings.iter().for_each(|warning| output::talk(&format!("warning: {warning}")));
    }
    Ok(Exit::Clean)
}
