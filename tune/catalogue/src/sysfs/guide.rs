//! Settings below /sys from the guide's script and profile: governor, disk schedulers, CPUs off and on.

use super::SYSFS;
use crate::HAZARDS;
use lowlat_host::Reading;
use lowlat_settings::{Context, Impact, Judgement, Risk, Setting, Want, change, judge};

const GOVERNORS: &str = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
const SCHEDULERS: &str = "/sys/block/*/queue/scheduler";
const LABELS_SHOWN_MAX: usize = 6;

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "sysfs.cpufreq.governor",
        change: change::files::governor,
        name: "scaling_governor",
        reason: "Any other governor than performance lowers the frequency of an idle CPU. A thread that \
                 wakes up there runs slowly until the governor reacts.",
        cost: "More power and heat while the host is idle.",
        risk: Risk::Power,
        impact: Impact::High,
        effective: "scaling_governor is performance for every CPU, and the frequency measured under load \
                    stays constant.",
        both: Want::Value("performance"),
        hazard: "The guide's loop counts CPUs from 0 and ignores offline ones. CPUs that come back online \
                 later start with the default governor.",
        sources: &[
            "guide 57037 section 4.3.3.1.2 step 3",
            "TuneD 2.28 profile latency-performance",
            "kernel Documentation/admin-guide/pm/cpufreq.rst",
        ],
        judge: governor,
        ..SYSFS
    },
    Setting {
        id: "sysfs.block.scheduler",
        change: change::files::disk_scheduler,
        name: "[disk] elevator",
        reason: "Solid-state disks need no sorting of requests. none passes them straight to the device and \
                 saves work on the CPU that submits.",
        cost: "A rotating disk serves one process at the expense of others.",
        impact: Impact::Low,
        effective: "/sys/block/DISK/queue/scheduler shows [none].",
        trading: Want::State("none on disks that do not rotate"),
        guide: Want::State("none on every disk"),
        hazard: "TuneD sets it for every disk, including rotating ones.",
        sources: &["guide 57037 section 4.3.2.1.1", "kernel Documentation/block/switching-sched.rst"],
        judge: scheduler,
        ..SYSFS
    },
    Setting {
        id: "sysfs.cpu.online_cycle",
        name: "/sys/devices/system/cpu/cpuN/online",
        reason: "Taking a CPU offline and online again drives timers, work and unmanaged interrupts away \
                 from it. It leaves no visible trace. isolcpus=managed_irq,domain, irqaffinity= and cpuset \
                 partitions keep CPUs clean from boot.",
        cost: "CPUs are missing for half a minute or more, and processes lose the affinity that they \
               requested.",
        risk: Risk::Availability,
        impact: Impact::Low,
        effective: "No state of the host shows it; compare `lowlat jitter` before and after.",
        guide: Want::State("every CPU but housekeeping taken offline and online since boot"),
        hazard: "The guide's loop assumes two sockets with one housekeeping core each and no SMT. It shrinks \
                 cpusets, drops affinities, can fail for CPU 0, and leaves offline CPUs in the default \
                 affinity of interrupts.",
        sources: &["guide 57037 section 4.3.3.1.2 step 4", HAZARDS],
        judge: |_, _| Judgement::unknown("an offline/online cycle leaves no trace on the host"),
        ..SYSFS
    },
];

fn governor(context: &Context<'_>, setting: &Setting) -> Judgement {
    let policies = &context.host.cpu.frequency;
    let want = setting.want(context.profile);
    let (mut slow, mut unread) = (Vec::new(), None);
    for policy in policies {
        match &policy.governor {
            Reading::Known(governor) if judge::satisfies(context, &want, governor) => {}
            Reading::Known(governor) => slow.push(format!("{governor} on {:#}", policy.cpus)),
            other => unread = unread.or(Some(other)),
        }
    }
    if !slow.is_empty() {
        return Judgement::wrong(judge::some_of(&slow, LABELS_SHOWN_MAX), "").at(GOVERNORS);
    }
    match unread {
        Some(reading) => judge::missing(reading, GOVERNORS),
        None if policies.is_empty() => Judgement::not_applicable(
            "no frequency driver is loaded: firmware or a hypervisor sets the frequency",
        ),
        None => Judgement::good("performance").at(GOVERNORS),
    }
}

fn scheduler(context: &Context<'_>, setting: &Setting) -> Judgement {
    let takes_all = setting.want(context.profile).text(context).is_some_and(|want| want.contains("every"));
    let (mut good, mut bad, mut unread) = (0usize, Vec::new(), None);
    for disk in &context.host.disks {
        match (&disk.scheduler, &disk.is_rotational) {
            (_, Reading::Known(true)) if !takes_all => {}
            // A device without its own request queue has no scheduler.
            (Reading::Absent, _) => {}
            (Reading::Known(_), kind) if !takes_all && !kind.is_known() => {
                unread = unread.or_else(|| Some(judge::missing(kind, "/sys/block/*/queue/rotational")));
            }
            (Reading::Known(word), _) if word == "none" => good += 1,
            (Reading::Known(word), _) => bad.push(format!("{}: {word}", disk.name)),
            (other, _) => unread = unread.or_else(|| Some(judge::missing(other, SCHEDULERS))),
        }
    }
    match (bad.is_empty(), unread) {
        (false, _) => Judgement::wrong(judge::some_of(&bad, LABELS_SHOWN_MAX), "").at(SCHEDULERS),
        (true, Some(missing)) => missing,
        (true, None) if !context.host.listed("/sys/block", ()).is_known() => {
            judge::missing(&context.host.listed("/sys/block", ()), "/sys/block")
        }
        (true, None) if good == 0 => Judgement::not_applicable("no disk with a scheduler to choose"),
        (true, None) => Judgement::good(format!("none on {good} disks")).at(SCHEDULERS),
    }
}
