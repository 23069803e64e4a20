//! Options with which the kernel was built.

use lowlat_settings::{
    Context, Impact, Judgement, Layer, Setting, Verdict, Want,
    judge::{self, DEBUG_OPTIONS},
};

const PLACE: &str = "/boot/config-RELEASE";
const CONFIGURATION: &str = "kernel Documentation/core-api/real-time/kernel-configuration.rst";

/// An option that a host with isolated CPUs needs.
const OPTION: Setting = Setting {
    layer: Layer::Kernel,
    impact: Impact::High,
    needs_reboot: true,
    effective: "The option is y in /boot/config-RELEASE or /proc/config.gz.",
    trading: Want::Value("y"),
    judge: built_in,
    ..Setting::BLANK
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "kernel.config.no_hz_full",
        name: "CONFIG_NO_HZ_FULL",
        reason: "Without it no kernel parameter stops the tick, which interrupts each isolated CPU CONFIG_HZ times a \
                 second. Debian 11 builds its kernel without it.",
        sources: &["kernel Documentation/timers/no_hz.rst", CONFIGURATION],
        ..OPTION
    },
    Setting {
        id: "kernel.config.rcu_nocb_cpu",
        name: "CONFIG_RCU_NOCB_CPU",
        reason: "Without it the callbacks of RCU run on the CPU that queued them, also on isolated ones.",
        sources: &["kernel Documentation/admin-guide/kernel-per-CPU-kthreads.rst", CONFIGURATION],
        ..OPTION
    },
    Setting {
        id: "kernel.config.debug",
        name: "CONFIG_PROVE_LOCKING, CONFIG_KASAN and others",
        reason: "Options for finding bugs in the kernel check every lock, every access to memory, or every section with \
                 interrupts off. They make system calls and interrupts several times longer.",
        effective: "None of the options is y in /boot/config-RELEASE or /proc/config.gz.",
        trading: Want::State("none built in"),
        sources: &[CONFIGURATION, "kernel lib/Kconfig.debug"],
        judge: debug,
        ..OPTION
    },
    Setting {
        id: "kernel.config.preempt_rt",
        name: "CONFIG_PREEMPT_RT",
        reason: "A real-time kernel bounds the time until a real-time thread runs after its interrupt. A thread that \
                 spins alone on an isolated CPU gains nothing, and most system calls take longer.",
        impact: Impact::Low,
        effective: "/sys/kernel/realtime contains 1.",
        trading: Want::State("your decision: measure with `lowlat jitter` on both kernels"),
        sources: &["kernel Documentation/core-api/real-time/theory.rst", CONFIGURATION],
        judge: real_time,
        ..OPTION
    },
];

fn built_in(context: &Context<'_>, setting: &Setting) -> Judgement {
    let option = setting.name.trim_start_matches("CONFIG_");
    judge::known(&context.host.kernel.config_option(option), PLACE, |value| match value.as_deref() {
        Some("y") => Judgement::good("y"),
        Some(other) => Judgement::wrong(other, ""),
        None => Judgement::wrong("not set", "boot a kernel that is built with it"),
    })
}

fn debug(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::known(&context.host.kernel.config, PLACE, |known| {
        let is_on = |option: &&&str| known.get(**option).is_some_and(|value| value == "y");
        let on: Vec<String> =
            DEBUG_OPTIONS.iter().filter(is_on).map(|option| format!("CONFIG_{option}")).collect();
        match on.as_slice() {
            [] => Judgement::good("none built in"),
            on => Judgement::wrong(judge::some_of(on, 8), "boot a kernel for production"),
        }
    })
}

/// Reports the option, but never advises it.
fn real_time(context: &Context<'_>, _: &Setting) -> Judgement {
    let because = "which kernel serves better is to be measured";
    judge::known(&context.host.kernel.config_option("PREEMPT_RT"), PLACE, |value| {
        Judgement::new(Verdict::NotApplicable, value.as_deref().unwrap_or("not set"), because)
    })
}
