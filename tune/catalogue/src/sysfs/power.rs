//! Idle states, frequencies and frequency drivers of the isolated CPUs.

use super::SYSFS;
use lowlat_host::{CpuId, CpuSet, Reading, snapshot::CpuFreq};
use lowlat_settings::{
    Context, Impact, Judgement, Risk, Setting, Verdict, Want,
    change::{self, WhyLeftOut},
    judge::{
        IDLE_DESCRIPTIONS,
        each::{One, isolated, judge_each, none_isolated},
        is_shallow, is_virtual, missing,
    },
};
use std::collections::BTreeMap;

const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
const CPUIDLE: &str = "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable";
const IDLE_DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const DOC_CPUIDLE: &str = "kernel Documentation/admin-guide/pm/cpuidle.rst";
const DOC_CPUFREQ: &str = "kernel Documentation/admin-guide/pm/cpufreq.rst";

const ROW: Setting = Setting { risk: Risk::Power, ..SYSFS };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "sysfs.cpuidle.deep_states",
        change: change::files::idle_states,
        name: "cpuidle/state*/disable",
        reason: "An idle CPU in a deep state takes longer to wake up, and the message that woke it waits. \
                 Isolated CPUs may use POLL and C1 only.",
        cost: "More power and heat on the isolated CPUs, which leaves less for the boost of others.",
        impact: Impact::High,
        effective: "the usage counters of the deeper states in cpuidle/state*/usage do not increase on the \
                    isolated CPUs.",
        reads: IDLE_DESCRIPTIONS,
        both: Want::State("no idle state deeper than C1 enabled on isolated CPUs"),
        hazard: "The guide does this three times on the command line (idle=poll, cpuidle.off=1, \
                 processor.max_cstate=0) and for every CPU. Disabling the states per CPU lets the \
                 housekeeping CPUs sleep.",
        judge: deep_states,
        sources: &[DOC_CPUIDLE, "guide 57037 section 4.3.2.1.1"],
        ..ROW
    },
    Setting {
        id: "sysfs.cpu_dma_latency",
        name: "/dev/cpu_dma_latency",
        reason: "A process that keeps this file open with a small number keeps every CPU out of idle states \
                 that take longer to leave. Onload, TuneD and many trading systems do so.",
        cost: "It applies to all CPUs, including housekeeping, and ends when the process does.",
        impact: Impact::Low,
        effective: "lsof /dev/cpu_dma_latency lists the process that keeps it open.",
        trading: Want::State("held low by a running process, unless the deeper states are disabled"),
        judge: dma_latency,
        sources: &["kernel Documentation/power/pm_qos_interface.rst", DOC_CPUIDLE],
        ..ROW
    },
    Setting {
        id: "sysfs.cpufreq.driver",
        not_planned: "the driver follows from the firmware's setup: disable Collaborative Power Control there",
        why_not: WhyLeftOut::Firmware,
        name: "scaling_driver",
        risk: Risk::None,
        reason: "The frequency driver passes the governor's requests to the hardware. Drivers that ask the \
                 firmware for each change (pcc-cpufreq) use one shared buffer and do not scale with the \
                 number of CPUs.",
        impact: Impact::Low,
        effective: "cpupower frequency-info.",
        reads: &["/sys/devices/system/cpu/amd_pstate/status", "/sys/devices/system/cpu/intel_pstate/status"],
        trading: Want::State("a driver that controls the hardware directly, or the firmware in charge"),
        judge: frequency_driver,
        sources: &[
            DOC_CPUFREQ,
            "kernel Documentation/admin-guide/pm/amd-pstate.rst",
            "kernel Documentation/admin-guide/pm/intel_pstate.rst",
        ],
        ..ROW
    },
    Setting {
        id: "sysfs.cpufreq.scaling_min",
        change: change::files::scaling_min,
        name: "scaling_min_freq",
        reason: "The lowest clock that the governor may choose. If it is below the highest, a CPU that was \
                 quiet handles the next message at a low clock. The performance governor always requests the \
                 highest.",
        cost: "More power on the isolated CPUs.",
        effective: "turbostat or cpupower monitor shows one clock on the isolated CPUs under light and heavy load.",
        trading: Want::State(
            "scaling_min_freq = scaling_max_freq, or governor performance, on isolated CPUs",
        ),
        judge: scaling_min,
        sources: &[DOC_CPUFREQ],
        ..ROW
    },
    Setting {
        id: "sysfs.cpufreq.energy_performance_preference",
        change: change::files::preference,
        name: "energy_performance_preference",
        reason: "The hint by which the hardware weighs speed against power when it chooses the clock (Intel \
                 HWP, AMD CPPC). Anything but performance lets it slow down.",
        cost: "More power on the isolated CPUs.",
        effective: "cpupower frequency-info; the hint is reset when a driver changes its mode.",
        trading: Want::Value("performance"),
        judge: preference,
        sources: &[
            "kernel Documentation/admin-guide/pm/amd-pstate.rst",
            "kernel Documentation/admin-guide/pm/intel_pstate.rst",
        ],
        ..ROW
    },
    Setting {
        id: "sysfs.cpufreq.boost_uniform",
        not_planned: "whether the isolated CPUs boost is your choice: write the same value to each policy",
        name: "cpufreq/policy*/boost",
        risk: Risk::None,
        reason: "If some isolated CPUs may boost and others may not, a thread runs at another speed after it \
                 moves, and measurements of one CPU do not apply to the next.",
        impact: Impact::Low,
        effective: "every cpufreq/policy*/boost of the isolated CPUs reads the same.",
        reads: &["/sys/devices/system/cpu/cpufreq/boost", "/sys/devices/system/cpu/cpufreq/policy*/boost"],
        trading: Want::State("the same on every isolated CPU"),
        judge: boost_uniform,
        sources: &[DOC_CPUFREQ, "kernel Documentation/ABI/testing/sysfs-devices-system-cpu: cpufreq/boost"],
        ..ROW
    },
];

/// Deeper states that isolated CPUs may enter, with those CPUs.
fn deep_on(context: &Context<'_>, isolated: &CpuSet) -> Vec<(String, CpuSet)> {
    let states = context.host.cpu.idle_states.iter().filter(|state| !is_shallow(context.host, state));
    states
        .map(|state| (state.name.clone(), state.cpus_enabled.intersection(isolated)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect()
}

/// The reason why the idle loop has no states at all, if it has none.
fn has_no_idle_states(context: &Context<'_>) -> Option<String> {
    let (cpu, line) = (&context.host.cpu, context.host.kernel.tokens());
    if line.last("idle") == Some("poll") {
        return Some("idle=poll on the command line".into());
    }
    let is_none = cpu.idle_driver.text() == "none" || line.last("cpuidle.off") == Some("1");
    (is_none && cpu.idle_states.is_empty()).then(|| "no cpuidle driver".into())
}

fn deep_states(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    if let Some(why) = has_no_idle_states(context) {
        return Judgement::good(why).at(IDLE_DRIVER);
    }
    if context.host.cpu.idle_states.is_empty() {
        return match &context.host.cpu.idle_driver {
            Reading::Absent | Reading::Known(_) => {
                Judgement::not_applicable("the kernel has no idle states on this host").at(IDLE_DRIVER)
            }
            other => missing(other, IDLE_DRIVER),
        };
    }
    let deep = deep_on(context, isolated);
    if deep.is_empty() {
        return Judgement::good("POLL and C1 only, or deeper states disabled").at(CPUIDLE);
    }
    let seen: Vec<String> = deep.iter().map(|(name, cpus)| format!("{name} on {cpus:#}")).collect();
    Judgement::wrong(seen.join("; "), "").at(CPUIDLE)
}

fn dma_latency(context: &Context<'_>, _: &Setting) -> Judgement {
    let is_shallow_only =
        context.host.cpu.idle_states.iter().all(|s| is_shallow(context.host, s) || s.cpus_enabled.is_empty());
    if has_no_idle_states(context).is_some() || is_shallow_only {
        return Judgement::not_applicable(
            "no deeper idle state is enabled, so nothing needs to be prevented",
        );
    }
    Judgement::unknown(
        "a request belongs to the process that made it and is not visible in any file that lowlat reads",
    )
    .at("/dev/cpu_dma_latency")
}

fn frequency_driver(context: &Context<'_>, _: &Setting) -> Judgement {
    let host = context.host;
    if host.cpu.frequency.is_empty() {
        return if is_virtual(context) {
            Judgement::not_applicable("a virtual machine does not control the clock")
        } else {
            Judgement::unknown(
                "no frequency driver is loaded: the firmware controls the clock (see \
                 firmware.power_regulator), or the kernel lacks the driver",
            )
            .at(CPUFREQ)
        };
    }
    let mode = ["amd_pstate", "intel_pstate"].into_iter().find_map(|driver| {
        let status = host.file(&format!("/sys/devices/system/cpu/{driver}/status"));
        status.known().map(|status| format!("{driver} {status}"))
    });
    judge_each(
        drivers(&host.cpu.frequency).into_iter().map(|(driver, cpus)| {
            let one = match driver {
                Reading::Known(name) if name == "pcc-cpufreq" => One::Wrong(
                    name,
                    "pcc-cpufreq asks the firmware for each change through one shared buffer; disable Collaborative \
                     Power Control in the BIOS"
                        .into(),
                ),
                Reading::Known(name) => One::Good(match &mode {
                    Some(mode) => format!("{name} ({mode})"),
                    None => name,
                }),
                other => One::Unknown(other.to_string()),
            };
            (format!("{:#}", &cpus), one)
        }),
        "no frequency driver",
    )
    .at(CPUFREQ)
}

/// The drivers with the CPUs of each.
fn drivers(policies: &[CpuFreq]) -> Vec<(Reading<String>, CpuSet)> {
    let mut drivers: Vec<(Reading<String>, CpuSet)> = Vec::new();
    for policy in policies {
        match drivers.iter_mut().find(|(driver, _)| *driver == policy.driver) {
            Some((_, cpus)) => cpus.extend(policy.cpus.iter()),
            None => drivers.push((policy.driver.clone(), policy.cpus.clone())),
        }
    }
    drivers
}

/// Judges the policies of isolated CPUs, and groups equal results.
fn each_policy(context: &Context<'_>, judge: impl Fn(&CpuFreq) -> One, when_none: &str) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let mut groups: Vec<(One, CpuSet)> = Vec::new();
    for policy in &context.host.cpu.frequency {
        let cpus = policy.cpus.intersection(isolated);
        if cpus.is_empty() {
            continue;
        }
        let one = judge(policy);
        match groups.iter_mut().find(|(seen, _)| *seen == one) {
            Some((_, all)) => all.extend(cpus.iter()),
            None => groups.push((one, cpus)),
        }
    }
    judge_each(groups.into_iter().map(|(one, cpus)| (format!("{:#}", &cpus), one)), when_none)
}

const NO_POLICY: &str = "the kernel does not control the clock of the isolated CPUs";

fn scaling_min(context: &Context<'_>, _: &Setting) -> Judgement {
    let judge = |policy: &CpuFreq| {
        if policy.governor.text() == "performance" {
            return One::Good("performance governor".into());
        }
        match (&policy.scaling_min_khz, &policy.scaling_max_khz) {
            (Reading::Known(min), Reading::Known(max)) if min >= max => {
                One::Good(format!("{} MHz", max / 1000))
            }
            (Reading::Known(min), Reading::Known(max)) => One::Wrong(
                format!("{} to {} MHz, governor {}", min / 1000, max / 1000, policy.governor),
                String::new(),
            ),
            (Reading::Known(_), other) | (other, _) => One::missing(other),
        }
    };
    each_policy(context, judge, NO_POLICY).at("/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq")
}

fn preference(context: &Context<'_>, _: &Setting) -> Judgement {
    let judge = |policy: &CpuFreq| match &policy.energy_performance_preference {
        // The number 0 stands for "performance".
        Reading::Known(hint) if hint == "performance" || hint == "0" => One::Good(hint.clone()),
        Reading::Known(hint) => One::Wrong(hint.clone(), String::new()),
        Reading::Absent => One::Skip("the frequency driver has no such hint".into()),
        other => One::Unknown(other.to_string()),
    };
    each_policy(context, judge, NO_POLICY)
        .at("/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference")
}

fn boost_uniform(context: &Context<'_>, setting: &Setting) -> Judgement {
    const GLOBAL: &str = "/sys/devices/system/cpu/cpufreq/boost";
    let Some(isolated) = isolated(context) else { return none_isolated() };
    let host = context.host;
    let of_policies =
        setting.reads.iter().filter(|glob| glob.contains('*')).flat_map(|glob| host.files_matching(glob));
    let mut policies: BTreeMap<CpuId, &CpuFreq> = BTreeMap::new();
    for policy in &host.cpu.frequency {
        for cpu in policy.cpus.iter() {
            policies.entry(cpu).or_insert(policy);
        }
    }
    let is_isolated = |path: &str| {
        let number =
            path.rsplit("policy").next().and_then(|rest| rest.split('/').next()?.parse::<u32>().ok());
        // A policy is named after its first CPU; its other CPUs are looked up.
        let policy = number.and_then(|n| policies.get(&n));
        policy.map_or_else(|| number.is_some_and(|n| isolated.contains(n)), |p| !p.cpus.is_disjoint(isolated))
    };
    let readings: Vec<&Reading<String>> =
        of_policies.filter(|(path, _)| is_isolated(path)).map(|(_, reading)| reading).collect();
    let values: Vec<&str> =
        readings.iter().filter_map(|reading| reading.known()).map(String::as_str).collect();
    let Some(first) = values.first() else {
        return match (readings.first(), host.file(GLOBAL)) {
            (Some(unread), _) => missing(unread, CPUFREQ),
            (None, Reading::Known(value)) => Judgement::good(format!("{value} for all CPUs")).at(GLOBAL),
            (None, Reading::Absent) => Judgement::not_applicable("the frequency driver has no boost switch"),
            (None, other) => missing(&other, GLOBAL),
        };
    };
    let differing = values.iter().filter(|value| *value != first).count();
    if differing == 0 {
        return Judgement::good(format!("{first} on every isolated CPU")).at(CPUFREQ);
    }
    Judgement::new(
        Verdict::Conflicting,
        format!("{first} on {} policies, otherwise on {differing}", values.len() - differing),
        "isolated CPUs do not boost alike",
    )
    .at(CPUFREQ)
}
