//! Idle states, frequency drivers and link power on the command line.

use super::{BOOT, GUIDE, HAZARDS, PARAMETERS, REALTIME};
use lowlat_settings::{
    Context, Impact, Judgement, Needs, Risk, Setting, Verdict, Want, change::WhyLeftOut, judge,
};

const INTEL_IDLE_DOC: &str = "kernel Documentation/admin-guide/pm/intel_idle.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.idle",
        name: "idle=",
        reason: "Makes idle CPUs spin instead of halting, so that waking up costs nothing. CPUs on which a \
                 thread spins never idle. The others produce heat, reduce the boost of their neighbours, and \
                 slow their SMT siblings. Limiting idle states to C1 gives most of the benefit.",
        cost: "Full power on every idle CPU, less boost for the busy ones, and a slower SMT sibling.",
        risk: Risk::Power,
        effective: "/sys/devices/system/cpu/cpuidle/current_driver is none.",
        guide: Want::Value("poll"),
        hazard: "idle=poll, cpuidle.off=1 and processor.max_cstate=0 all have the same effect. idle=poll heats the \
                 package and takes boost from the CPUs that matter.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        needs: Needs::X86,
        ..BOOT
    },
    Setting {
        id: "boot.cpuidle.off",
        name: "cpuidle.off=",
        reason: "Switches the idle-state framework off. Idle CPUs then use the architecture's plain halt. \
                 idle=poll makes it redundant, and per-state control through sysfs is lost.",
        cost: "No idle state can be chosen at run time.",
        risk: Risk::Power,
        effective: "/sys/module/cpuidle/parameters/off is 1.",
        reads: &["/sys/module/cpuidle/parameters/off"],
        guide: Want::Value("1"),
        hazard: "Redundant with idle=poll.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        judge: |context, setting| {
            judge::boot_token_shown(context, setting, "1", "the kernel ignored the parameter")
        },
        ..BOOT
    },
    Setting {
        id: "boot.processor.max_cstate",
        name: "processor.max_cstate=",
        reason: "The deepest idle state that the ACPI idle driver may enter. Deeper states save power but \
                 take longer to leave, which delays a parked thread when its message arrives.",
        cost: "Idle CPUs use more power, and busy ones may boost less.",
        risk: Risk::Power,
        impact: Impact::Low,
        effective: "No state beyond C1 is enabled on isolated CPUs in /sys/devices/system/cpu/cpu*/cpuidle.",
        trading: Want::OneOf(&["1", "0"]),
        guide: Want::Value("0"),
        hazard: "0 is silently treated as 1. The intel_idle driver does not read the parameter at all.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        judge: processor_max_cstate,
        ..BOOT
    },
    Setting {
        id: "boot.intel_idle.max_cstate",
        name: "intel_idle.max_cstate=",
        reason: "The deepest idle state that Intel's own idle driver may enter. 0 leaves idling to the ACPI \
                 driver, which then needs processor.max_cstate=1.",
        cost: "Idle CPUs use more power, and busy ones may boost less.",
        risk: Risk::Power,
        impact: Impact::Low,
        effective: "No state beyond C1 is enabled on isolated CPUs in /sys/devices/system/cpu/cpu*/cpuidle.",
        trading: Want::Value("1"),
        needs: Needs::INTEL,
        sources: &[INTEL_IDLE_DOC, PARAMETERS],
        judge: intel_max_cstate,
        ..BOOT
    },
    Setting {
        id: "boot.intel_pstate",
        name: "intel_pstate=",
        reason: "Switches Intel's frequency driver off, so that acpi-cpufreq sets the frequency. With the \
                 performance governor, either driver keeps the frequency high.",
        cost: "The hardware no longer chooses frequencies itself.",
        effective: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver is not intel_pstate.",
        guide: Want::Value("disable"),
        hazard: "Has no effect on AMD processors, for which the guide is written; it is part of the line that the \
                 guide prints.",
        sources: &[GUIDE, HAZARDS, "TuneD 2.28 profile cpu-partitioning"],
        needs: Needs::X86,
        ..BOOT
    },
    Setting {
        id: "boot.amd_pstate",
        not_planned: "the performance governor keeps the frequency up with any driver; see sysfs.cpufreq.governor",
        why_not: WhyLeftOut::ByAnother,
        name: "amd_pstate=",
        reason: "Chooses AMD's frequency driver. Any choice works as long as the frequency stays up. disable \
                 leaves it to acpi-cpufreq; active and passive need the performance governor.",
        cost: "More power.",
        risk: Risk::Power,
        effective: "scaling_governor is performance for every CPU, or no frequency driver is loaded.",
        trading: Want::State("disable, or the performance governor"),
        needs: Needs::AMD,
        sources: &[REALTIME, "kernel Documentation/admin-guide/pm/amd-pstate.rst"],
        judge: amd_pstate,
        ..BOOT
    },
    Setting {
        id: "boot.pcie_aspm",
        name: "pcie_aspm=",
        reason: "Stops the kernel from managing the power saving of PCI Express links. Links that the \
                 firmware left in power saving stay there. What counts is the state of each link.",
        cost: "The kernel no longer handles PCI Express hotplug, and network interfaces that are named by \
               slot change their names.",
        risk: Risk::Availability,
        effective: "Link Control of each device shows ASPM Disabled (lspci -vv).",
        guide: Want::Value("off"),
        hazard: "off does not switch power saving off: it leaves every link as the firmware set it. \
                 pcie_aspm.policy=performance disables it on each link that the firmware lets the kernel \
                 control. The parameter also takes PCI Express hotplug slots from the kernel, and with them \
                 the slot names of network interfaces. ens1 can come back as enp65s0, and a remote host then \
                 comes back without its address.",
        sources: &[GUIDE, HAZARDS, PARAMETERS],
        ..BOOT
    },
];

/// In force if isolated CPUs can enter no state deeper than C1. `because` explains a deeper one.
fn idle_in_force(context: &Context<'_>, because: &str) -> judge::ParameterInForce {
    let states = &context.host.cpu.idle_states;
    if states.is_empty() {
        return judge::ParameterInForce::Unseen;
    }
    let watched = judge::each::isolated(context).unwrap_or(&context.host.topology.online);
    let deep: Vec<String> = states
        .iter()
        .filter(|state| !judge::is_shallow(context.host, state) && !state.cpus_enabled.is_disjoint(watched))
        .map(|state| state.name.clone())
        .collect();
    if deep.is_empty() {
        return judge::ParameterInForce::Yes(
            "no idle state beyond C1 is enabled on isolated CPUs".to_owned(),
        );
    }
    judge::ParameterInForce::no(format!("isolated CPUs may enter {}", deep.join(", ")), because)
}

/// Returns "not applicable" if another parameter or the hypervisor decides how CPUs idle.
fn decided_elsewhere(context: &Context<'_>) -> Option<Judgement> {
    let tokens = context.host.kernel.tokens();
    if tokens.last("idle") == Some("poll") {
        return Some(judge::good_because("idle=poll", "CPUs spin when idle and enter no idle state"));
    }
    let has_no_driver = matches!(context.host.cpu.idle_driver.text(), "none");
    has_no_driver.then(|| {
        Judgement::not_applicable("no idle driver is loaded: idle CPUs halt and enter nothing deeper")
    })
}

fn processor_max_cstate(context: &Context<'_>, setting: &Setting) -> Judgement {
    let is_letter = matches!(setting.want(context.profile), Want::Value(_));
    if is_letter {
        let judgement = judge::boot_token(context, setting);
        if judgement.verdict != Verdict::Good {
            return judgement;
        }
        let because = "the driver treats 0 as 1, so C1 stays allowed; only idle=poll keeps CPUs out of it";
        return Judgement { verdict: Verdict::Ineffective, because: because.to_owned(), ..judgement };
    }
    if let Some(judgement) = decided_elsewhere(context) {
        return judgement;
    }
    if context.host.cpu.idle_driver.text() == "intel_idle" {
        return Judgement::not_applicable(
            "intel_idle controls the idle states; see boot.intel_idle.max_cstate",
        );
    }
    let because = "the current idle driver ignores the parameter";
    judge::boot_token_in_force(context, setting, idle_in_force(context, because))
}

fn intel_max_cstate(context: &Context<'_>, setting: &Setting) -> Judgement {
    if let Some(judgement) = decided_elsewhere(context) {
        return judgement;
    }
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    if line.last("intel_idle.max_cstate") == Some("0") {
        return match line.last("processor.max_cstate") {
            Some("0" | "1") => Judgement::good("intel_idle.max_cstate=0 with processor.max_cstate"),
            _ => Judgement::wrong(
                "intel_idle.max_cstate=0",
                "the ACPI driver takes over and may enter deeper states: add processor.max_cstate=1",
            ),
        }
        .at("/proc/cmdline");
    }
    if context.host.cpu.idle_driver.text() == "acpi_idle" {
        return Judgement::not_applicable(
            "the ACPI driver controls the idle states; see boot.processor.max_cstate",
        );
    }
    let because = "a state beyond C1 is still allowed";
    judge::boot_token_in_force(context, setting, idle_in_force(context, because))
}

fn amd_pstate(context: &Context<'_>, _: &Setting) -> Judgement {
    let tokens = context.host.kernel.tokens();
    let token = tokens
        .last("amd_pstate")
        .map_or("not on the command line".to_owned(), |mode| format!("amd_pstate={mode}"));
    let policies = &context.host.cpu.frequency;
    if policies.is_empty() {
        return Judgement::not_applicable("no frequency driver is loaded");
    }
    let slow: Vec<String> = policies
        .iter()
        .filter(|policy| {
            policy.driver.text().starts_with("amd-pstate") && policy.governor.text() != "performance"
        })
        .map(|policy| format!("{:#}: {} {}", policy.cpus, policy.driver, policy.governor))
        .collect();
    let judgement = if slow.is_empty() {
        Judgement::good(token)
    } else {
        Judgement::wrong(
            format!("{token}; {}", judge::some_of(&slow, 4)),
            "the driver may lower the frequency of these CPUs",
        )
    };
    judgement.at("/proc/cmdline")
}
