//! `lowlat cache partition`: gives the isolated CPUs ways of the cache that housekeeping cannot fill.

use crate::commands::{help, tune::CarryOutArgs};
use crate::{
    exit::Exit,
    host::{Host, HostArgs},
};
use anyhow::bail;
use clap::Args;
use lowlat_host::{HostSnapshot, resctrl::Resctrl};
use lowlat_plan::Plan;
use lowlat_settings::change::{WhyLeftOut, cache};
use lowlat_tune_run::flow::ApplyOptions;

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
    #[command(flatten)]
    carry_out: CarryOutArgs,
}

pub fn run(arguments: &CachePartitionArgs) -> anyhow::Result<Exit> {
    let mut host = arguments.host.read()?;
    let plan = planned(&mut host)?;
    let needs_no_mount = arguments.carry_out.dry_run || Resctrl::of(&host.snapshot).is_some();
    let carry_out = |host: &HostSnapshot, plan: Plan| {
        arguments.carry_out.run(&arguments.host.root, host, plan, ApplyOptions::default())
    };
    let done = carry_out(&host.snapshot, plan)?;
    if needs_no_mount {
        return Ok(done);
    }
    // The mount shows what the CPU can allocate.
    let mut host = arguments.host.read()?;
    if Resctrl::of(&host.snapshot).is_none() {
        return Ok(done);
    }
    let plan = planned(&mut host)?;
    carry_out(&host.snapshot, plan)
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
