//! The scheduler tick and the work of RCU on isolated CPUs.

use super::{BOOT, CPU_PARTITIONING, GUIDE, NETWORK_LATENCY, PARAMETERS};
use lowlat_host::{
    CpuSet, Reading,
    cmdline::{CommandLine, same_name},
};
use lowlat_settings::{Context, Impact, Judgement, Needs, Risk, Setting, Verdict, Want, change, judge};

const NOHZ_FULL_PATH: &str = "/sys/devices/system/cpu/nohz_full";
const NO_HZ_DOC: &str = "kernel Documentation/timers/no_hz.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.nohz",
        name: "nohz=",
        reason: "Lets the tick stop on idle CPUs. It is the kernel's default. Only nohz=off would matter, \
                 because nohz_full= cannot work then.",
        effective: "nohz_full= works: see boot.nohz_full.",
        guide: Want::Value("on"),
        hazard: "The kernel's default: it changes nothing.",
        sources: &[GUIDE, CPU_PARTITIONING, PARAMETERS],
        ..BOOT
    },
    Setting {
        id: "boot.nohz_full",
        change: change::boot::nohz_full,
        name: "nohz_full=",
        reason: "Stops the scheduler tick on these CPUs while one thread runs there. Otherwise the tick \
                 interrupts each of them CONFIG_HZ times a second. It also moves RCU callbacks, unbound \
                 timers, kernel threads and the lockup detectors away.",
        cost: "System calls and interrupts on these CPUs take longer because of the accounting at each entry \
               to the kernel.",
        impact: Impact::High,
        effective: "/sys/devices/system/cpu/nohz_full lists the CPUs. The LOC row of /proc/interrupts hardly \
                    increases on them while one thread runs.",
        both: Want::Derived(judge::tickless_list),
        hazard: "The guide writes every CPU out. Ranges are shorter, and grubenv has only 1,024 bytes. \
                 Since kernel 6.12 the fair server can start the tick again; see debugfs.sched.fair_server.",
        sources: &[GUIDE, CPU_PARTITIONING, PARAMETERS, NO_HZ_DOC],
        judge: nohz_full,
        ..BOOT
    },
    Setting {
        id: "boot.rcu_nocbs",
        change: change::boot::rcu_nocbs,
        name: "rcu_nocbs=",
        reason: "Moves the RCU callbacks of these CPUs to kernel threads that can run elsewhere, instead of \
                 a softirq on the CPU itself. The kernel always does this for CPUs of nohz_full=.",
        cost: "The housekeeping CPUs do the work.",
        impact: Impact::High,
        effective: "Kernel threads named rcuop or rcuos exist for the CPUs, and the RCU row of \
                    /proc/softirqs hardly increases on them.",
        both: Want::Derived(judge::isolated_list),
        sources: &[GUIDE, CPU_PARTITIONING, PARAMETERS],
        judge: rcu_nocbs,
        ..BOOT
    },
    Setting {
        id: "boot.rcu_nocb_poll",
        name: "rcu_nocb_poll",
        reason: "Makes the threads that run offloaded RCU callbacks poll for work, so that an isolated CPU \
                 need not wake them.",
        cost: "The threads wake up constantly on the housekeeping CPUs and use power there.",
        risk: Risk::Power,
        impact: Impact::Medium,
        needs: Needs::ANY.with_config(&["RCU_NOCB_CPU"]),
        both: Want::State("present"),
        sources: &[GUIDE, PARAMETERS],
        ..BOOT
    },
    Setting {
        id: "boot.rcupdate.rcu_normal_after_boot",
        name: "rcupdate.rcu_normal_after_boot=",
        reason: "Makes the kernel use only normal RCU grace periods after boot. Expedited ones interrupt \
                 every CPU that is not idle, including isolated ones.",
        cost: "Some administrative calls, such as loading modules or configuring networks, take longer.",
        impact: Impact::Medium,
        effective: "/sys/kernel/rcu_normal is 1.",
        reads: &["/sys/kernel/rcu_normal"],
        trading: Want::Value("1"),
        sources: &[NETWORK_LATENCY, PARAMETERS, "TuneD commit cbcd1df"],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "1", "the kernel still allows expedited grace periods")
        },
        ..BOOT
    },
    Setting {
        id: "boot.rcutree.nohz_full_patience_delay",
        name: "rcutree.nohz_full_patience_delay=",
        reason: "How long, in milliseconds of a grace period, RCU leaves nohz_full CPUs alone before it asks \
                 them for a quiescent state. Most grace periods end before that.",
        cost: "Grace periods last longer, and memory is freed later.",
        impact: Impact::Medium,
        needs: Needs::since(6, 11).with_config(&["NO_HZ_FULL"]),
        effective: "/sys/module/rcutree/parameters/nohz_full_patience_delay shows the value.",
        reads: &["/sys/module/rcutree/parameters/nohz_full_patience_delay"],
        trading: Want::Value("1000"),
        sources: &[NETWORK_LATENCY, PARAMETERS],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "1000", "the kernel ignored the value")
        },
        ..BOOT
    },
];

/// Judgement for a kernel that does not support the parameter.
fn cannot(context: &Context<'_>, key: &str, option: &str, effect: &str) -> Option<Judgement> {
    let line: &CommandLine = context.host.kernel.command_line.known()?;
    let is_built_without = context.host.kernel.config_option(option) == Reading::Known(None);
    is_built_without.then(|| {
        let because =
            format!("this kernel is built without CONFIG_{option}: {effect}; use a kernel that has it");
        match line.in_force(key) {
            Some(value) => Judgement::new(Verdict::Ineffective, format!("{key}={value}"), because),
            None => Judgement::wrong("not on the command line", because),
        }
        .at("/proc/cmdline")
    })
}

fn nohz_full(context: &Context<'_>, setting: &Setting) -> Judgement {
    if let Some(judgement) = cannot(context, "nohz_full", "NO_HZ_FULL", "it cannot stop the tick") {
        return judgement;
    }
    if context.host.kernel.tokens().last("nohz") == Some("off") {
        let because = "nohz=off keeps the tick on every CPU, and nohz_full= cannot work";
        return Judgement::new(Verdict::Conflicting, "nohz=off", because).at("/proc/cmdline");
    }
    judge::boot_cpus_in_force(context, setting, &context.host.topology.nohz_full, NOHZ_FULL_PATH)
}

fn rcu_nocbs(context: &Context<'_>, setting: &Setting) -> Judgement {
    if let Some(judgement) = cannot(context, "rcu_nocbs", "RCU_NOCB_CPU", "it cannot offload callbacks") {
        return judgement;
    }
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let on_line = |key| judge::cpus_on_line(context, line, key);
    let shown = context.host.topology.nohz_full.known().cloned();
    let tickless = shown.or_else(|| on_line("nohz_full")?.ok()).unwrap_or_default();
    let offloaded = match on_line("rcu_nocbs") {
        None => CpuSet::new(),
        Some(Ok(cpus)) => cpus,
        // The kernel reads an invalid list as "all CPUs" (rcu_nocb_setup).
        Some(Err(_)) => context.allocation.isolated.clone(),
    };
    let is_trading = context.profile == lowlat_host::Profile::Trading;
    let judgement = if is_trading && context.allocation.isolated.is_subset(&offloaded.union(&tickless)) {
        let words = line.tokens().iter().filter(|(name, _)| {
            same_name(name, "rcu_nocbs") || (same_name(name, "nohz_full") && !tickless.is_empty())
        });
        let spell = |(name, value): &(String, Option<String>)| match value {
            Some(value) => format!("{name}={value}"),
            None => name.clone(),
        };
        let observed = words.map(spell).collect::<Vec<_>>().join(" ");
        let because = if context.allocation.isolated.is_subset(&offloaded) {
            ""
        } else {
            "the kernel offloads the callbacks of nohz_full CPUs in any case"
        };
        judge::good_because(observed, because).at("/proc/cmdline")
    } else {
        judge::boot_cpus(context, setting)
    };
    rcu_threads_exist(context, judgement)
}

/// Confirms offloading by its kernel threads. If the list of threads has none of them, offloading did not
/// happen.
fn rcu_threads_exist(context: &Context<'_>, judgement: Judgement) -> Judgement {
    let threads = &context.host.tasks.kernel_threads;
    if judgement.verdict != Verdict::Good
        || threads.is_empty()
        || threads.iter().any(|thread| thread.comm.starts_with("rcuo"))
    {
        return judgement;
    }
    let because =
        "no kernel thread named rcuop or rcuos is running: the kernel did not offload the callbacks";
    Judgement {
        verdict: Verdict::Ineffective,
        because: because.to_owned(),
        can_await_reboot: true,
        ..judgement
    }
}
