//! Clock sources and the tick's phase.

use super::{BOOT, GUIDE, NETWORK_LATENCY, PARAMETERS};
use lowlat_settings::{Context, Impact, Judgement, Needs, Risk, Setting, Want, change, judge};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.tsc",
        change: change::boot::tsc,
        name: "tsc=",
        reason: "Switches off the watchdog that checks the time stamp counter (TSC) against a slower clock. \
                 Its timer moves over all online CPUs, including isolated ones. A false alarm makes the \
                 kernel fall back to a clock that takes far longer to read.",
        cost: "A counter that drifts or differs between sockets goes unnoticed. First check that the CPU \
               flags include constant_tsc and nonstop_tsc and that the kernel log has no complaint about the \
               TSC.",
        risk: Risk::Compliance,
        impact: Impact::Medium,
        effective: "/sys/devices/system/clocksource/clocksource0/current_clocksource is tsc.",
        trading: Want::Derived(reliable_tsc),
        guide: Want::Value("reliable"),
        hazard: "Dangerous on a machine with unsynchronised time stamp counters: clocks differ between CPUs, \
                 and nothing reports it.",
        sources: &[GUIDE, NETWORK_LATENCY, PARAMETERS],
        judge: tsc,
        needs: Needs::X86,
        ..BOOT
    },
    Setting {
        id: "boot.clocksource",
        change: change::boot::clock_source,
        name: "clocksource=",
        reason: "Forces a clock source. The kernel chooses the time stamp counter automatically where it can \
                 be trusted. Any other source makes each reading of the clock slow, and some need a system \
                 call.",
        impact: Impact::Medium,
        effective: "/sys/devices/system/clocksource/clocksource0/current_clocksource is tsc.",
        trading: Want::Derived(|context| is_x86(context).then(|| "absent, or tsc".to_owned())),
        sources: &[PARAMETERS],
        judge: clocksource,
        ..BOOT
    },
    Setting {
        id: "boot.skew_tick",
        name: "skew_tick=",
        reason: "Offsets the tick of each CPU from the others, so that they do not all contend for the same \
                 locks at the same moment.",
        cost: "CPUs wake up at different times, and the package sleeps less.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("1"),
        sources: &[
            NETWORK_LATENCY,
            PARAMETERS,
            "guide 57037 section 4.3.2.1.1: its bare cmdline= loses the parent profile's skew_tick=1",
        ],
        ..BOOT
    },
];

fn is_x86(context: &Context<'_>) -> bool {
    context.host.kernel.is_x86() == Some(true) || context.host.cpu.is_amd() || context.host.cpu.is_intel()
}

/// Wants the parameter only if the processor promises a constant counter.
fn reliable_tsc(context: &Context<'_>) -> Option<String> {
    let has = |flag| context.host.cpu.has_flag(flag).known() == Some(&true);
    (is_x86(context) && has("constant_tsc") && has("nonstop_tsc")).then(|| "reliable".to_owned())
}

/// `nowatchdog` has the same effect without the additional trust that `reliable` implies.
fn tsc(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    if line.last("tsc") == Some("nowatchdog") && !matches!(setting.want(context.profile), Want::Value(_)) {
        return judge::good_because("tsc=nowatchdog", "the watchdog is off").at("/proc/cmdline");
    }
    let in_use = context.host.cpu.clocksource.text();
    let in_force = match in_use {
        // A guest may have a reason to use its hypervisor's clock, which is based on the counter.
        "" | "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen" => judge::ParameterInForce::Unseen,
        other => judge::ParameterInForce::no(
            format!("the clock source in use is {other}"),
            "the kernel does not use the time stamp counter, so the parameter does nothing",
        ),
    };
    judge::boot_token_in_force(context, setting, in_force)
}

fn clocksource(context: &Context<'_>, _: &Setting) -> Judgement {
    let in_use = context.host.cpu.clocksource.text();
    judge::on_line(context, |line| match line.last("clocksource") {
        None => Judgement::good("not on the command line"),
        Some("tsc") if !matches!(in_use, "" | "tsc") => Judgement::not_in_force(
            format!("clocksource=tsc, but {in_use} is in use"),
            "the kernel found the time stamp counter unusable; see its log",
        ),
        Some("tsc") => Judgement::good("clocksource=tsc"),
        Some(other) => Judgement::wrong(format!("clocksource={other}"), "it forces a slower clock"),
    })
}
