//! CPUs that the scheduler and device interrupts avoid.

use super::{BOOT, CPU_PARTITIONING, GUIDE, HAZARDS, PARAMETERS, REALTIME};
use lowlat_host::{
    BOOT_CPU, CpuSet, ISOLCPUS_FLAGS, ISOLCPUS_SKIPS_FLAGS_SINCE, Reading, cmdline::CommandLine,
};
use lowlat_settings::{Context, Impact, Judgement, Setting, Verdict, Want, change, judge};

const ISOLATED_PATH: &str = "/sys/devices/system/cpu/isolated";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.isolcpus",
        name: "isolcpus=",
        reason: "domain takes CPUs out of load balancing, so that no task is moved there automatically. \
                 managed_irq steers the queues of kernel-managed interrupts, such as those of NVMe, to \
                 housekeeping CPUs. No other setting can move them.",
        cost: "Threads must be pinned manually; otherwise all threads of a process stay on one isolated CPU. \
               Unlike a cpuset partition, it cannot be reverted without a reboot.",
        impact: Impact::High,
        effective: "/sys/devices/system/cpu/isolated lists the CPUs.",
        trading: Want::Derived(isolcpus),
        sources: &[PARAMETERS, REALTIME, "kernel commit 11ea68f553e2 (isolcpus=managed_irq, 5.6)"],
        judge: judge_isolcpus,
        ..BOOT
    },
    Setting {
        id: "boot.irqaffinity",
        name: "irqaffinity=",
        reason: "The CPUs that handle interrupts from the start of the kernel. Interrupts of drivers loaded \
                 later go there too, so no service has to move them in time.",
        cost: "All device interrupts share the housekeeping CPUs.",
        impact: Impact::Medium,
        effective: "/proc/irq/default_smp_affinity lists the housekeeping CPUs.",
        trading: Want::Derived(judge::boot_irq_list),
        sources: &[PARAMETERS, HAZARDS],
        judge: irqaffinity,
        ..BOOT
    },
    Setting {
        id: "boot.tuned.non_isolcpus",
        change: change::processes::to_housekeeping,
        name: "tuned.non_isolcpus=",
        reason: "Process 1 passes its CPUs on to every process that it starts. TuneD's hook in the initial RAM disk \
                 reads this parameter, and TuneD sets systemd's CPUAffinity=; both keep user processes on the \
                 housekeeping CPUs. isolcpus= does the same in the kernel.",
        cost: "Programs that need an isolated CPU must request it.",
        impact: Impact::Medium,
        effective: "`taskset -cp 1` and `taskset -cp $$` in a new shell print the housekeeping CPUs.",
        guide: Want::Derived(housekeeping_mask),
        hazard: "The parameter works only with the initial RAM disk that TuneD built, so the plan also sets \
                 CPUAffinity= for systemd's manager. The guide computes the mask in a shell script, which gives a \
                 wrong one from 64 CPUs on.",
        sources: &[GUIDE, CPU_PARTITIONING, "systemd-system.conf(5): CPUAffinity="],
        judge: first_process,
        ..BOOT
    },
];

fn isolcpus(context: &Context<'_>) -> Option<String> {
    let isolated = judge::isolated_list(context)?;
    let known = ["managed_irq", "domain"].map(|flag| (flag, context.host.knows_isolcpus_flag(flag)));
    let flags = known.iter().filter(|(_, knows)| *knows != Some(false)).map(|(flag, _)| *flag);
    Some(flags.chain([isolated.as_str()]).collect::<Vec<_>>().join(","))
}

fn judge_isolcpus(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    if let Some(because) = isolates_nothing(context, line) {
        let token = format!("isolcpus={}", line.in_force("isolcpus").unwrap_or_default());
        return Judgement::new(Verdict::Ineffective, token, because).at("/proc/cmdline");
    }
    if !line.has("isolcpus") && is_partitioned(context) {
        let because = "isolated by cpuset partitions; managed interrupts are judged by irq.affinity";
        return judge::good_because("isolated cpuset partitions contain the CPUs", because)
            .at("/sys/fs/cgroup");
    }
    judge::boot_cpus_in_force(context, setting, &taken_for_domain(context, line), ISOLATED_PATH)
}

/// The reason why the kernel ignores `isolcpus=`, if its flags are the cause.
fn isolates_nothing(context: &Context<'_>, line: &CommandLine) -> Option<String> {
    let flags = line.flags("isolcpus");
    let is_unknown = |flag: &&&str| context.host.knows_isolcpus_flag(flag) == Some(false);
    if judge::kernel_at_least(context.host, ISOLCPUS_SKIPS_FLAGS_SINCE) == Some(false)
        && let Some(flag) = flags.iter().find(is_unknown)
    {
        let since = ISOLCPUS_FLAGS.iter().find(|(known, _)| known == flag).map(|(_, since)| since);
        let kernels = since.map_or(ISOLCPUS_SKIPS_FLAGS_SINCE, |since| *since);
        return Some(format!("kernels before {kernels} do not know {flag} and ignore the whole parameter"));
    }
    let is_list_missing = judge::cpus_on_line(context, line, "isolcpus")?.is_ok_and(|cpus| cpus.is_empty());
    let last = flags.last().filter(|_| is_list_missing)?;
    Some(format!(
        "the kernel reads {last} as a flag, not as a list of CPUs, and isolates nothing; write the CPUs as numbers"
    ))
}

/// CPUs that the kernel isolated, if the command line asks for it. Without the flag `domain` the file stays
/// empty.
fn taken_for_domain(context: &Context<'_>, line: &CommandLine) -> Reading<CpuSet> {
    if line.isolation().contains(&"domain") {
        context.host.topology.isolated.clone()
    } else {
        Reading::Absent
    }
}

fn is_partitioned(context: &Context<'_>) -> bool {
    let partitions = context.host.services.cpuset_partitions.iter();
    let held = partitions
        .filter(|partition| partition.is_isolated())
        .filter_map(|partition| partition.cpus.known())
        .fold(CpuSet::new(), |held, cpus| held.union(cpus));
    context.allocation.isolated.is_subset(&held)
}

/// Conflicting if the command line isolates CPUs and also sends interrupts to them.
fn irqaffinity(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let cpus_of = |key| judge::cpus_on_line(context, line, key).and_then(Result::ok).unwrap_or_default();
    let irqs = cpus_of("irqaffinity");
    for key in ["isolcpus", "nohz_full"] {
        let mut both = irqs.intersection(&cpus_of(key));
        // The kernel adds the boot CPU itself.
        both.remove(BOOT_CPU);
        if !both.is_empty() {
            let because = format!("{key}= isolates {both:#} and irqaffinity= sends interrupts to them");
            return Judgement::new(Verdict::Conflicting, format!("irqaffinity={irqs}"), because)
                .at("/proc/cmdline");
        }
    }
    let default = &context.host.interrupts.default_affinity;
    let online = &context.host.topology.online;
    let taken = default.as_ref().map(|cpus| cpus.intersection(online));
    if !line.has("irqaffinity") {
        // The mask can also be set at run time, through /proc/irq/default_smp_affinity.
        return judge::boot_cpus_in_force(context, setting, &taken, "/proc/irq/default_smp_affinity");
    }
    judge::boot_cpus(context, setting)
}

fn housekeeping_mask(context: &Context<'_>) -> Option<String> {
    judge::housekeeping_list(context)?;
    // TuneD writes groups of eight digits.
    let bits = context.host.topology.cpu_count().next_multiple_of(32);
    Some(context.allocation.housekeeping.to_mask_padded(bits))
}

/// Judged by the CPUs of process 1, however they were set.
fn first_process(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::known(&context.host.tasks.first_process_cpus, "/proc/1/status", |cpus| {
        let observed = format!("process 1 may use {cpus:#}");
        let reached = cpus.intersection(&context.allocation.isolated);
        if reached.is_empty() {
            Judgement::good(observed)
        } else if context.host.kernel.tokens().has("tuned.non_isolcpus") {
            let because =
                "the parameter is on the command line, but nothing in the initial RAM disk reads it";
            Judgement::not_in_force(observed, because)
        } else {
            Judgement::wrong(observed, format!("so every process may run on isolated {reached:#}"))
        }
    })
}
