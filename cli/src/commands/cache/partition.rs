//! `lowlat cache partition`: gives the isolated CPUs ways of the cache that housekeeping cannot fill.

use crate::commands::{help, tune};
use crate::{
    exit::Exit,
    host::{Host, HostArgs},
    output,
};
use anyhow::bail;
use clap::Args;
use lowlat_host::{HostSnapshot, resctrl::Resctrl};
use lowlat_plan::Plan;
use lowlat_settings::change::{WhyLeftOut, cache};
use lowlat_tune_run::flow::ApplyOptions;
use std::path::PathBuf;

/// Give the isolated CPUs ways of the cache that housekeeping cannot fill (resctrl)
#[derive(Debug, Args)]
#[command(after_help = help("Mounts resctrl if necessary. Then a group of the isolated CPUs gets ways of each cache that they share with \
    housekeeping, and housekeeping gets the others and, where the CPU counts in percent, half of the memory \
    bandwidth. Groups of other programs are never changed.\n\
    `lowlat tune verify` checks what was applied, `lowlat tune rollback` restores it.\n\n\
    Exit codes: 0 nothing to change or in force, 1 changes planned or some refused, 2 error, \
    4 nothing to change, but less than half of the settings could be checked.", &[
    ("lowlat cache partition --dry-run", "Show what would change."),
    ("sudo lowlat cache partition", "Apply it, after confirmation."),
]))]
pub struct CachePartitionArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Show the changes; write nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print the plan or the result as JSON
    #[arg(long)]
    json: bool,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    state_dir: Option<PathBuf>,
}

pub fn run(arguments: &CachePartitionArgs) -> anyhow::Result<Exit> {
    let mut host = arguments.host.read()?;
    let plan = planned(&mut host)?;
    if arguments.dry_run {
        output::print_as(arguments.json, &plan, |width| lowlat_tune_report::plan_text(&plan, width))?;
        return Ok(plan.claim().into());
    }
    let site = tune::open(&arguments.host.root, arguments.state_dir.as_ref())?;
    let answers = (arguments.yes, arguments.json);
    let is_mounted = Resctrl::of(&host.snapshot).is_some();
    let done = tune::carry_out_here(&site, &host.snapshot, plan, ApplyOptions::default(), answers)?;
    if is_mounted {
        return Ok(done);
    }
    // The mount shows what the CPU can allocate.
    let mut host = arguments.host.read()?;
    if Resctrl::of(&host.snapshot).is_none() {
        return Ok(done);
    }
    let plan = planned(&mut host)?;
    tune::carry_out_here(&site, &host.snapshot, plan, ApplyOptions::default(), answers)
}

/// Returns the plan of the partition alone, or the reason why none is possible.
fn planned(host: &mut Host) -> anyhow::Result<Plan> {
    host.role.is_partitioning_cache = true;
    if has_none(&host.snapshot) {
        bail!(
            "cannot partition the cache: this CPU has no cache allocation\nhint: isolate CPUs that share no cache with \
             housekeeping; `lowlat host show` lists the CPUs of each cache"
        );
    }
    let plan =
        Plan::of_some(&host.context(), env!("CARGO_PKG_VERSION"), |setting| setting.id == cache::SETTING);
    let reason =
        plan.left_out.iter().find(|left| left.why != WhyLeftOut::Good && left.why != WhyLeftOut::ByAnother);
    match reason.filter(|_| plan.changes.is_empty()) {
        Some(left) => bail!(
            "cannot partition the cache: {}\nhint: `lowlat audit --all` has the reasons of the other settings",
            left.text
        ),
        None => Ok(plan),
    }
}

/// True if the CPU is known to have no cache allocation.
fn has_none(host: &HostSnapshot) -> bool {
    let has_flag = host.cpu.flags.known().map(|flags| cache::FLAGS.iter().any(|flag| flags.contains(*flag)));
    Resctrl::of(host).is_none() && has_flag == Some(false)
}
