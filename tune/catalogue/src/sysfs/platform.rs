//! Clock source, PCI Express power states, microcode, machine checks, mitigations, and time lost to a
//! hypervisor.

use super::SYSFS;
use lowlat_host::{Profile, Reading};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Verdict, Want,
    change::{self, WhyLeftOut},
    judge::{
        command_line,
        each::{isolated, list},
        is_virtual, known, missing, no_command_line,
    },
};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "sysfs.clocksource",
        change: change::files::clock_source,
        name: "current_clocksource",
        reason: "Reading time from the TSC takes one instruction and no system call. Other clock sources are \
                 outside the processor (HPET, ACPI timer) or go through the hypervisor, which slows down \
                 every time stamp.",
        impact: Impact::High,
        effective: "clock_gettime does not show in strace; /sys/devices/system/clocksource/clocksource0/current_clocksource.",
        both: Want::Derived(wanted_clocksource),
        hazard: "The guide adds tsc=reliable, which also switches off the check of the TSC against another \
                 clock. A drifting TSC then goes unnoticed.",
        judge: clocksource,
        sources: &[
            "kernel Documentation/timers/timekeeping.rst",
            "guide 57037 section 4.3.2.1.1: tsc=reliable",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.tsc_flags",
        not_planned: "the processor, or the hypervisor, has no such counter",
        why_not: WhyLeftOut::Hardware,
        name: "constant_tsc, nonstop_tsc",
        reason: "A TSC whose rate follows the clock, or that stops in idle states, cannot be the time base. \
                 The kernel then uses a slower clock source, and time stamps of different CPUs are not \
                 comparable.",
        effective: "both flags in /proc/cpuinfo.",
        needs: Needs::X86,
        both: Want::State("both present"),
        judge: tsc_flags,
        sources: &["kernel Documentation/virt/kvm/x86/timekeeping.rst: TSC hardware"],
        ..SYSFS
    },
    Setting {
        id: "sysfs.pcie_aspm.policy",
        name: "pcie_aspm policy",
        reason: "Active State Power Management puts PCI Express links to sleep between packets. The next packet waits \
                 until the link is awake.",
        cost: "More idle power in links and devices.",
        risk: Risk::Power,
        effective: "lspci -vv shows ASPM Disabled in LnkCtl of the NIC and of the port above it.",
        reads: &["/sys/module/pcie_aspm/parameters/policy"],
        trading: Want::Value("performance"),
        judge: aspm_policy,
        sources: &[
            "kernel Documentation/admin-guide/kernel-parameters.txt: pcie_aspm=, pcie_aspm.policy=",
            "kernel commit 6c723d5bd89f: PCIE ASPM support",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.microcode_uniform",
        not_planned: "load one revision on every processor: update the firmware, or the distribution's microcode \
                      package",
        why_not: WhyLeftOut::Firmware,
        name: "microcode",
        reason: "Processors with different microcode differ in timing and errata. A thread that moves, or a \
                 measurement on another CPU, then gives different results.",
        impact: Impact::Low,
        needs_reboot: true,
        effective: "one microcode revision in /proc/cpuinfo.",
        trading: Want::State("the same on every CPU"),
        judge: microcode,
        sources: &["kernel Documentation/arch/x86/microcode.rst"],
        ..SYSFS
    },
    Setting {
        id: "sysfs.machinecheck.check_interval",
        change: change::files::check_interval,
        name: "check_interval",
        reason: "The interval, in seconds, at which a timer on each CPU polls for corrected hardware errors, \
                 including isolated CPUs. 0 switches the polling off.",
        cost: "Errors of units that raise no interrupt go unnoticed until they can no longer be corrected.",
        risk: Risk::Ras,
        impact: Impact::Low,
        effective: "the MCP row of /proc/interrupts does not increase.",
        reads: &["/sys/devices/system/machinecheck/machinecheck0/check_interval"],
        trading: Want::State("the kernel's interval, or 0 if the role accepts this risk"),
        guide: Want::State("no polling (mce=ignore_ce)"),
        hazard: "mce=ignore_ce also drops the corrected errors that the hardware reports without polling. A \
                 failing module is noticed only when it takes the host down.",
        judge: check_interval,
        sources: &[
            "kernel Documentation/ABI/testing/sysfs-mce: check_interval",
            "guide 57037 section 4.3.2.1.1: mce=ignore_ce",
        ],
        ..SYSFS
    },
    Setting {
        id: "sysfs.vulnerabilities",
        not_planned: "a security decision: update kernel and microcode, or accept the risk in the role file",
        name: "vulnerabilities",
        reason: "Mitigations of processor flaws cost time at each entry to the kernel. A trading thread that \
                 stays in user space is seldom affected. Whether to disable them is a security decision: \
                 lowlat shows the state and never advises to switch them off.",
        cost: "Without mitigations one process can read another's memory.",
        risk: Risk::Security,
        impact: Impact::Low,
        needs_reboot: true,
        effective: "/sys/devices/system/cpu/vulnerabilities/*.",
        trading: Want::State("every known flaw mitigated, or the risk accepted in the role file"),
        judge: vulnerabilities,
        sources: &["kernel Documentation/admin-guide/hw-vuln/index.rst"],
        ..SYSFS
    },
    Setting {
        id: "readiness.virtual_machine",
        not_planned: "use a physical host: a hypervisor cannot be tuned from inside",
        why_not: WhyLeftOut::Hardware,
        layer: Layer::Readiness,
        name: "hypervisor",
        reason: "In a virtual machine the hypervisor takes CPUs away at times that nothing inside can see or \
                 prevent. Firmware, clocks and caches are emulated.",
        effective: "systemd-detect-virt prints none.",
        both: Want::State("a physical host"),
        judge: virtual_machine,
        sources: &[
            "kernel Documentation/virt/kvm/x86/timekeeping.rst: virtualization problems",
            "guide 57037 chapter 2",
        ],
        ..Setting::BLANK
    },
    Setting {
        id: "readiness.steal",
        not_planned: "the hypervisor's share is decided outside this host",
        why_not: WhyLeftOut::Hardware,
        layer: Layer::Readiness,
        name: "steal",
        reason: "Steal is the time in which a CPU of this virtual machine wanted to run, but the hypervisor \
                 ran something else. A trading thread sees an interruption without a visible cause.",
        impact: Impact::High,
        effective: "the steal column of /proc/stat does not increase.",
        trading: Want::State("no time stolen from isolated CPUs"),
        judge: steal,
        sources: &["kernel Documentation/filesystems/proc.rst: /proc/stat"],
        ..Setting::BLANK
    },
];

fn wanted_clocksource(context: &Context<'_>) -> Option<String> {
    match context.host.kernel.machine.text() {
        "x86_64" => Some("tsc".into()),
        "aarch64" => Some("arch_sys_counter".into()),
        _ => None,
    }
}

fn clocksource(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let cpu = &context.host.cpu;
    let wanted = wanted_clocksource(context).unwrap_or_default();
    known(&cpu.clocksource, PATH, |current| {
        let is_offered = || cpu.clocksources_available.known().is_some_and(|all| all.contains(&wanted));
        let because = if *current == wanted {
            return Judgement::good(current.as_str());
        } else if is_offered() {
            format!("{wanted} is available but not selected; see clocksource= on the command line")
        } else {
            format!("the kernel does not offer {wanted}; search its log for \"unstable\"")
        };
        Judgement::wrong(current.as_str(), because)
    })
}

fn tsc_flags(context: &Context<'_>, _: &Setting) -> Judgement {
    known(&context.host.cpu.flags, "/proc/cpuinfo", |flags| {
        let mut wanted = vec!["constant_tsc", "nonstop_tsc"];
        wanted.retain(|flag| !flags.contains(*flag));
        match wanted.as_slice() {
            [] => Judgement::good("both present"),
            gone => Judgement::wrong(format!("missing: {}", gone.join(", ")), ""),
        }
    })
}

fn aspm_policy(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    if line.last("pcie_aspm") == Some("off") {
        return Judgement::not_applicable(
            "pcie_aspm=off: the kernel leaves every link as the firmware set it and ignores the policy; see nic.pcie_aspm",
        )
        .at("/proc/cmdline");
    }
    if is_virtual(context) {
        return Judgement::not_applicable(
            "a virtual machine has no links that sleep; the host controls those of devices passed through",
        );
    }
    lowlat_settings::judge::files(context, setting)
}

fn microcode(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/cpuinfo";
    let cpu = &context.host.cpu;
    match &cpu.microcode_uniform {
        Reading::Known(true) => Judgement::good(cpu.microcode.to_string()),
        Reading::Known(false) => {
            Judgement::wrong(format!("{} and others", cpu.microcode), "CPUs run different microcode")
        }
        Reading::Absent => Judgement::not_applicable("this processor reports no microcode revision"),
        other => missing(other, PATH),
    }
    .at(PATH)
}

fn check_interval(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/machinecheck/machinecheck0/check_interval";
    let reading = context.host.file(PATH);
    // The file contains seconds in hexadecimal without a prefix.
    let interval_s =
        reading.clone().parse(PATH, "seconds in hexadecimal", |text| u64::from_str_radix(text, 16).ok());
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    let is_ignored = line.last("mce") == Some("ignore_ce");
    let (is_off, observed) = match &interval_s {
        _ if is_ignored => (true, "mce=ignore_ce: corrected errors are ignored".to_owned()),
        Reading::Known(0) => (true, "0: no polling".to_owned()),
        Reading::Known(seconds) => (false, format!("every {seconds} s")),
        Reading::Absent => return Judgement::not_applicable("this host has no machine-check timer").at(PATH),
        other => return missing(other, PATH),
    };
    let wants_off = context.profile == Profile::Guide57037 || context.role.accepts(setting.id);
    let (verdict, because) = match (is_off, wants_off) {
        (true, true) => (Verdict::Good, ""),
        (false, false) => (
            Verdict::Good,
            "each CPU takes a timer interrupt at this interval; to switch it off, accept the risk in the \
             role file",
        ),
        (true, false) => {
            (Verdict::Wrong, "errors go unnoticed; if that is intended, accept the risk in the role file")
        }
        (false, true) => (Verdict::Wrong, "polling still interrupts every CPU"),
    };
    Judgement::new(verdict, observed, because).at(PATH)
}

fn vulnerabilities(context: &Context<'_>, setting: &Setting) -> Judgement {
    const PATH: &str = "/sys/devices/system/cpu/vulnerabilities";
    let all = &context.host.cpu.vulnerabilities;
    let Some((name, first)) = all.iter().next() else {
        return Judgement::unknown("the kernel reports nothing about processor flaws").at(PATH);
    };
    if !all.values().any(Reading::is_known) {
        return missing(first, &format!("{PATH}/{name}"));
    }
    let of = |wanted: FlawState| -> Vec<String> {
        let is_of = |state: &Reading<String>| {
            state.known().map_or(FlawState::Unknown, |text| FlawState::of(text)) == wanted
        };
        all.iter().filter(|(_, state)| is_of(state)).map(|(name, _)| name.clone()).collect()
    };
    let (partly, open, unknown) =
        (of(FlawState::PartlyMitigated), of(FlawState::Open), of(FlawState::Unknown));
    let named = |what: &str, flaws: &[String]| match flaws {
        [] => String::new(),
        flaws => format!(", {what}: {}", list(flaws)),
    };
    let observed = format!(
        "mitigated: {}, not affected: {}, open: {}{}{}",
        of(FlawState::Mitigated).len() + partly.len(),
        of(FlawState::NotAffected).len(),
        open.len(),
        named("partly mitigated", &partly),
        named("unknown", &unknown)
    );
    if context.role.accepts(setting.id) && !(open.is_empty() && unknown.is_empty()) {
        return Judgement::new(Verdict::Good, observed, "the role file accepts the risk").at(PATH);
    }
    let remedy = "update kernel and microcode, or accept the risk in the role file";
    match (open.is_empty(), unknown.is_empty()) {
        (true, true) => Judgement::good(observed),
        (true, false) => {
            let because = format!("the state of {} is not known; {remedy}", list(&unknown));
            Judgement::new(Verdict::Unknown, observed, because)
        }
        (false, _) => Judgement::wrong(observed, format!("open: {}; {remedy}", list(&open))),
    }
    .at(PATH)
}

/// The kernel's report on one flaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlawState {
    NotAffected,
    Mitigated,
    /// Mitigated, but still open between threads of a core or through one path: "SMT vulnerable", "BHI:
    /// Vulnerable".
    PartlyMitigated,
    /// The state depends on the hypervisor, or on microcode that does not report it.
    Unknown,
    /// Anything else: "Vulnerable", "KVM: Vulnerable", "Processor vulnerable".
    Open,
}

impl FlawState {
    /// Parses the words of arch/x86/kernel/cpu/bugs.c and of other architectures.
    fn of(text: &str) -> Self {
        let is_mitigated = text.starts_with("Mitigation") || text.starts_with("KVM: Mitigation");
        match is_mitigated {
            true if text.to_ascii_lowercase().contains("vulnerable") => Self::PartlyMitigated,
            true => Self::Mitigated,
            false if text.starts_with("Not affected") => Self::NotAffected,
            false if text.to_ascii_lowercase().contains("vulnerable") => Self::Open,
            false => Self::Unknown,
        }
    }
}

fn virtual_machine(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/cpuinfo";
    let virtualization = &context.host.virtualization;
    match &virtualization.is_virtual {
        Reading::Known(false) => Judgement::good("no hypervisor").at(PATH),
        Reading::Known(true) => {
            let name = virtualization.hypervisor.known().map_or("a hypervisor", String::as_str);
            Judgement::wrong(
                name,
                "latencies measured here are those of the virtual machine and its neighbours",
            )
            .at(PATH)
        }
        other => virtual_unknown(other),
    }
}

/// It is not known whether the host is virtual: x86 has a flag for it, other architectures only the names in
/// their firmware.
fn virtual_unknown(is_virtual: &Reading<bool>) -> Judgement {
    match is_virtual {
        Reading::Absent => Judgement::unknown(
            "neither the processor's flags nor the firmware's names show whether this host is virtual",
        ),
        other => missing(other, "/proc/cpuinfo"),
    }
}

fn steal(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/stat";
    let virtualization = &context.host.virtualization;
    match &virtualization.is_virtual {
        Reading::Known(true) => {}
        Reading::Known(false) => return Judgement::not_applicable("no hypervisor takes time from this host"),
        other => return virtual_unknown(other),
    }
    let ticks = context.host.listed(PATH, &virtualization.steal_ticks);
    let Reading::Known(ticks) = ticks else { return missing(&ticks, PATH) };
    if ticks.is_empty() {
        return Judgement::unknown("/proc/stat reports no steal time").at(PATH);
    }
    // If no CPU is isolated, every CPU counts.
    let counted = isolated(context).unwrap_or(&context.host.topology.online);
    let stolen: Vec<String> = ticks
        .iter()
        .filter(|(cpu, ticks)| **ticks > 0 && counted.contains(**cpu))
        .map(|(cpu, ticks)| format!("CPU {cpu}: {ticks} ticks"))
        .collect();
    if stolen.is_empty() {
        return Judgement::good("none since boot").at(PATH);
    }
    Judgement::wrong(format!("{} since boot", list(&stolen)), "the hypervisor runs other work on these CPUs")
        .at(PATH)
}
