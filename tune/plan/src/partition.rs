//! Isolation by a cpuset partition instead of boot parameters: what is planned, its slice, and what it covers.

use lowlat_host::{CpuSet, Reading, kernel_version::KernelVersion, snapshot::CpusetPartition};
use lowlat_settings::{
    Context, Setting,
    change::{Change, Moment, Proposal, Target, WhyLeftOut},
    judge::kernel_at_least,
};

/// The slice that forms the partition. A name without a dash, so that its group is a child of the root, which is
/// always a partition root.
const SLICE: &str = "lowlat.slice";
/// The setting that the partition corrects.
const PARTITION: &str = "sysfs.cpuset.partition";
/// The setting that it replaces.
pub(super) const REPLACES: &str = "boot.isolcpus";
/// The root group's list of all isolated partitions. It came with the exclusion from unbound workqueues.
const ISOLATED: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";
/// The first kernel with isolated partitions.
const SINCE: KernelVersion = KernelVersion::new(6, 1);

/// Kernel work that a partition keeps off its CPUs, and the first kernel in which it does.
const COVERED: [(KernelVersion, &str); 4] = [
    (SINCE, "load balancing and threads outside the slice"),
    (KernelVersion::new(6, 8), "work of unbound workqueues"),
    (KernelVersion::new(6, 19), "timers of other CPUs"),
    (KernelVersion::new(7, 0), "unbound kernel threads, by the kernel's own rules"),
];

/// Replaces the boot parameters of a proposal by the reason why they are left out, and adds the partition to the
/// proposal of its row.
pub(super) fn instead_of_boot(context: &Context<'_>, setting: &Setting, proposal: &mut Proposal) {
    if setting.id == PARTITION {
        *proposal = if let Some(reason) = obstacle(context) {
            Proposal::not(WhyLeftOut::Kernel, reason)
        } else {
            let target = Target::CpusetPartition { slice: SLICE.to_owned() };
            let before = target.kind().present(context.host);
            Proposal::default().step(target, before, context.allocation.isolated.to_list())
        };
    } else if !proposal.tokens.is_empty() {
        proposal.tokens.clear();
        proposal.left_out.push(if setting.id == REPLACES {
            (WhyLeftOut::ByAnother, format!("an isolated partition takes its place ({PARTITION})"))
        } else {
            (
                WhyLeftOut::YourChoice,
                "a boot parameter; plan without --isolate-by cpuset to set it".to_owned(),
            )
        });
    }
}

pub(super) fn is_partition(change: &Change) -> bool {
    matches!(change.target, Target::CpusetPartition { .. })
}

/// Returns the reason why no partition can be formed on this host, if any.
fn obstacle(context: &Context<'_>) -> Option<String> {
    let is_shown = context.host.file(ISOLATED).is_known()
        || context.host.services.cpuset_partitions.iter().any(CpusetPartition::is_isolated);
    if kernel_at_least(context.host, SINCE) == Some(false) && !is_shown {
        return Some(format!("isolated cpuset partitions came with Linux {SINCE}; use boot parameters"));
    }
    match context.host.services.cgroup_version {
        Reading::Known(2) => None,
        Reading::Known(_) => Some(
            "the cpuset controller belongs to version 1 of control groups, which has no partitions; boot with \
             systemd.unified_cgroup_hierarchy=1, or use boot parameters"
                .to_owned(),
        ),
        _ => Some("no control groups of version 2 at /sys/fs/cgroup; use boot parameters".to_owned()),
    }
}

/// The slice's unit file and the notes on the partition, if the changes form one.
pub(super) fn slice(context: &Context<'_>, changes: &[Change]) -> Option<(Change, Vec<String>)> {
    let partition = changes.iter().find(|change| is_partition(change))?;
    let cpus = &partition.after;
    let file = Change {
        target: Target::OwnedFile { path: format!("/etc/systemd/system/{SLICE}") },
        before: Reading::Absent,
        cost: String::new(),
        after: format!(
            "# Written by lowlat; changes are lost when it applies a plan.\n[Unit]\nDescription=CPUs isolated by lowlat\n\n\
             [Slice]\nAllowedCPUs={cpus}\n# Since systemd 261; earlier versions ignore it, and lowlat.service sets it.\n\
             CPUSetPartition=isolated\n"
        ),
        moment: Moment::AtBoot,
        reason: "Gives the CPUs to one slice. systemd creates its group with these CPUs, and lowlat.service forms the \
                 partition at each boot."
            .to_owned(),
        ..partition.clone()
    };
    Some((file, notes(context, cpus)))
}

fn notes(context: &Context<'_>, cpus: &str) -> Vec<String> {
    let list = CpuSet::parse_list(cpus).unwrap_or_default();
    let is_covered = |since: KernelVersion| {
        let has_list = context.host.file(ISOLATED).is_known() && since <= KernelVersion::new(6, 8);
        has_list || kernel_at_least(context.host, since) != Some(false)
    };
    let (covered, missing): (Vec<_>, Vec<_>) = COVERED.iter().partition(|(since, _)| is_covered(*since));
    let covered: Vec<&str> = covered.iter().map(|(_, what)| *what).collect();
    let missing: Vec<String> =
        missing.iter().map(|(since, what)| format!("{what} (Linux {since})")).collect();
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => format!(" Later kernels also keep off: {}.", missing.join("; ")),
    };
    vec![
        format!(
            "{list:#}: only processes in {SLICE} can run there, as soon as the plan is applied. Start them with \
             `systemd-run --scope --slice={SLICE} COMMAND` or with Slice={SLICE} in their unit, and pin their threads."
        ),
        format!("On this kernel the partition keeps off: {}.{missing}", covered.join("; ")),
        "Only boot parameters stop the tick (nohz_full=), move RCU's callbacks (rcu_nocbs=) and steer interrupts that \
         the kernel manages (isolcpus=managed_irq). To set them, plan without --isolate-by cpuset."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use lowlat_catalogue::{CATALOGUE, testing::Bench};
    use lowlat_host::{IsolateBy, snapshot::CpusetPartition};

    fn bench(version: u32) -> Bench {
        Bench::trading().line("ro").with(|bench| {
            bench.role.isolate_by = IsolateBy::Cpuset;
            bench.host.topology.isolated = Reading::Known(CpuSet::new());
            bench.host.services.cgroup_version = Reading::Known(version);
        })
    }

    fn plan(bench: &Bench) -> Plan {
        Plan::of(&bench.context(), "0.0.0")
    }

    fn why<'a>(plan: &'a Plan, id: &str) -> &'a str {
        plan.left_out.iter().find(|left| left.setting == id).map_or("", |left| left.text.as_str())
    }

    #[test]
    fn a_partition_takes_the_place_of_boot_parameters() {
        let plan = plan(&bench(2).kernel(6, 1));
        let partition = plan.changes.iter().find(|change| is_partition(change)).unwrap();
        assert_eq!((partition.before.text(), partition.after.as_str()), ("none", "1-7,9-15"));
        assert_eq!(partition.settings, [PARTITION]);
        let slice = plan.changes.iter().find(|change| change.after.contains("[Slice]")).unwrap();
        assert!(slice.after.contains("AllowedCPUs=1-7,9-15\n"), "{}", slice.after);
        assert!(!plan.needs_reboot());
        assert!(why(&plan, REPLACES).contains("partition"));
        assert!(why(&plan, "boot.nohz_full").contains("boot parameter"));
    }

    #[test]
    fn the_notes_say_what_this_kernel_covers() {
        let says = |bench: &Bench, piece: &str| plan(bench).warnings.iter().any(|note| note.contains(piece));
        let old = bench(2).kernel(6, 1);
        assert!(says(&old, "threads outside the slice. Later") && says(&old, "workqueues (Linux 6.8)"));
        assert!(says(&old, "nohz_full=") && says(&old, "rcu_nocbs="));
        let new = bench(2).kernel(7, 3);
        assert!(says(&new, "; unbound kernel threads") && !says(&new, "Later"));
        // Distributions bring it to older kernels.
        let backported = old.knob(ISOLATED, "");
        assert!(says(&backported, "slice; work of unbound workqueues. Later"));
    }

    #[test]
    fn hosts_without_partitions_are_told_why() {
        for (bench, piece) in [
            (bench(2).kernel(5, 15), "came with Linux 6.1"),
            (bench(1).kernel(6, 1), "version 1"),
            (bench(0).kernel(6, 1), "version 1"),
        ] {
            let plan = plan(&bench);
            assert!(why(&plan, PARTITION).contains(piece), "{}", why(&plan, PARTITION));
            assert!(!plan.changes.iter().any(is_partition) && !plan.needs_reboot());
        }
    }

    #[test]
    fn a_plan_in_effect_is_complete_and_one_that_planning_gives_again() {
        let mut bench = bench(2).kernel(6, 12);
        let first = plan(&bench);
        for host in [bench.host.clone(), {
            for change in &first.changes {
                change.target.kind().put(&mut bench.host, &change.after);
            }
            bench.host.clone()
        }] {
            assert_eq!(first.foreign_changes(&host, CATALOGUE), Vec::<String>::new());
        }
        let again = plan(&bench);
        assert!(!again.changes.iter().any(is_partition), "planned again");
        bench.host.services.cpuset_partitions = vec![CpusetPartition {
            group: "/lowlat.slice".into(),
            state: "isolated invalid (Cpu list in cpuset.cpus not exclusive)".into(),
            cpus: Reading::Known(CpuSet::new()),
        }];
        assert!(plan(&bench).changes.iter().any(is_partition));
    }
}
