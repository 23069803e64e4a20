//! Work of the kernel that delays threads: preemption, accounting, calls of firmware, consoles, DMA mappings.

use super::{BOOT, PARAMETERS};
use lowlat_host::{Reading, cmdline::CommandLine, kernel_version::KernelVersion};
use lowlat_settings::{
    Context, Impact, Judgement, Needs, Risk, Setting, Want,
    change::{Proposal, WhyLeftOut},
    judge,
};

const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";
/// The first kernel with lazy preemption.
const LAZY_SINCE: KernelVersion = KernelVersion::new(6, 13);
const IOMMU_TYPE: &str = "/sys/kernel/iommu_groups/0/type";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";
const HARDWARE: &str = "kernel Documentation/core-api/real-time/hardware.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.preempt",
        name: "preempt=",
        reason: "With lazy preemption a thread that wakes up waits for the next tick before it replaces one of the same \
                 policy, up to 4 ms with CONFIG_HZ=250. With full it replaces it at once. Real-time threads are not \
                 affected, nor are CPUs on which one thread runs.",
        cost: "More switches between threads on the housekeeping CPUs.",
        impact: Impact::Medium,
        needs: Needs::since(5, 12).with_config(&["PREEMPT_DYNAMIC"]),
        effective: "/sys/kernel/debug/sched/preempt shows (full).",
        reads: &[PREEMPT],
        trading: Want::Value("full"),
        sources: &[
            PARAMETERS,
            "kernel Documentation/scheduler/sched-preemption.rst",
            "kernel commit 7dadeaa6e851: x86 and arm64 offer full and lazy only (7.0)",
        ],
        judge: preempt,
        ..BOOT
    },
    Setting {
        id: "boot.psi",
        name: "psi=",
        reason: "Pressure stall information accounts for every switch between threads and every wake-up.",
        cost: "No /proc/pressure; systemd-oomd and cgroup limits by pressure do not work.",
        risk: Risk::Availability,
        needs: Needs::since(4, 20).with_config(&["PSI"]),
        effective: "/proc/pressure does not exist.",
        trading: Want::Value("0"),
        sources: &["kernel Documentation/accounting/psi.rst", "Ubuntu real-time: kernel boot parameters"],
        judge: psi,
        ..BOOT
    },
    Setting {
        id: "boot.split_lock_detect",
        change: |_, _| Proposal::default().without_token("split_lock_detect"),
        name: "split_lock_detect=",
        reason: "A locked instruction whose operand crosses two cache lines locks the bus, and every core waits. The kernel \
                 detects that by default and logs the program. With off nothing shows it.",
        impact: Impact::Medium,
        needs: Needs { x86: true, ..Needs::since(5, 7) },
        effective: "The kernel's log contains \"x86/split lock detection\" where the processor can detect it.",
        trading: Want::State("not off"),
        sources: &[PARAMETERS, "kernel Documentation/arch/x86/buslock.rst"],
        judge: split_lock_detect,
        ..BOOT
    },
    Setting {
        id: "boot.efi_runtime",
        not_planned: "kthread.workqueue.global keeps the calls off isolated CPUs; efi=noruntime prevents them, and \
                      with them changes of the boot entries",
        why_not: WhyLeftOut::ByAnother,
        name: "efi=noruntime",
        reason: "A call of the firmware's run-time services keeps its CPU for milliseconds: to read or set its clock, or a \
                 boot variable. The kernel makes them from an unbound work queue, on any CPU of the mask.",
        cost: "efibootmgr and rtc-efi no longer work, and the firmware's menu must select another boot entry.",
        impact: Impact::Medium,
        effective: "The calls run on housekeeping CPUs: /sys/devices/virtual/workqueue/cpumask names no isolated CPU.",
        trading: Want::State("no call of EFI run-time services on isolated CPUs"),
        sources: &[
            HARDWARE,
            PARAMETERS,
            "kernel commit d9f283ae71af \"efi: Disable runtime services on RT\" (5.16)",
        ],
        judge: efi_runtime,
        ..BOOT
    },
    Setting {
        id: "boot.iommu_pt",
        name: "iommu=",
        reason: "With pt, devices of the kernel's own drivers reach memory without translation. Otherwise each packet's \
                 buffer is mapped before and unmapped after, and the translations are flushed.",
        cost: "A faulty or malicious device can read and write all memory.",
        risk: Risk::Security,
        impact: Impact::Medium,
        needs: Needs::X86,
        effective: "/sys/kernel/iommu_groups/*/type is identity.",
        reads: &[IOMMU_TYPE],
        trading: Want::Value("pt"),
        sources: &[PARAMETERS, "kernel Documentation/ABI/testing/sysfs-kernel-iommu_groups: type"],
        judge: iommu_pt,
        ..BOOT
    },
    Setting {
        id: "boot.console_serial",
        not_planned: "a serial console may be the only way in after a failure; sysctl.kernel.printk keeps it silent",
        name: "console=ttyS",
        reason: "The kernel writes messages to a serial console with interrupts off, at 115,200 baud about 90 us for each \
                 character. The CPU that logged one cannot do anything else.",
        impact: Impact::Low,
        effective: "The line console= of the kernel's command line names no serial port, or kernel.printk is 4 or less.",
        reads: &["/proc/sys/kernel/printk"],
        trading: Want::State("no serial console that prints warnings"),
        sources: &[HARDWARE, "kernel Documentation/admin-guide/serial-console.rst"],
        judge: console_serial,
        ..BOOT
    },
];

/// The highest console level that prints errors but no warnings.
pub(crate) const QUIET_LEVEL: u32 = 4;

/// The serial consoles of a command line.
pub(crate) fn serial_consoles(line: &CommandLine) -> Vec<String> {
    let is_serial = |name: &&str| name.starts_with("ttyS") || name.starts_with("ttyAMA");
    line.all("console").flatten().filter(is_serial).map(|name| format!("console={name}")).collect()
}

/// The mode in parentheses in "full (lazy)", otherwise the one on the command line.
fn preempt(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let shown = context.host.file(PREEMPT);
    let mode = match &shown {
        Reading::Known(text) => {
            text.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(mode, _)| mode)
        }
        _ => None,
    };
    match (mode, &shown) {
        (Some("lazy"), _) => Judgement::wrong("lazy", "").at(PREEMPT),
        (mode, _) if judge::kernel_at_least(context.host, LAZY_SINCE) == Some(false) => {
            judge::good_because(mode.unwrap_or("not lazy"), "this kernel has no lazy preemption").at(PREEMPT)
        }
        (Some(mode), _) => Judgement::good(mode).at(PREEMPT),
        (None, Reading::Known(text)) => {
            Judgement::unknown(format!("found {text:?}, expected a mode such as (full)")).at(PREEMPT)
        }
        (None, other) => match line.last("preempt") {
            Some("lazy") => Judgement::wrong("preempt=lazy", "").at("/proc/cmdline"),
            Some(mode) => Judgement::good(format!("preempt={mode}")).at("/proc/cmdline"),
            None => judge::missing(other, PREEMPT),
        },
    }
}

/// Off without the parameter only in kernels that are built so.
fn psi(context: &Context<'_>, _: &Setting) -> Judgement {
    let is_off_by_default = context.host.kernel.config_option("PSI_DEFAULT_DISABLED");
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    match (line.last("psi"), is_off_by_default) {
        (Some("0" | "n" | "off"), _) => Judgement::good("psi=0"),
        (Some(value), _) => Judgement::wrong(format!("psi={value}"), ""),
        (None, Reading::Known(Some(_))) => {
            judge::good_because("off", "this kernel is built with CONFIG_PSI_DEFAULT_DISABLED")
        }
        (None, Reading::Known(None)) => Judgement::wrong("on, the kernel's default", ""),
        (None, other) => return judge::missing(&other, "/boot/config-RELEASE"),
    }
    .at("/proc/cmdline")
}

fn split_lock_detect(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::on_line(context, |line| match line.last("split_lock_detect") {
        Some("off") => Judgement::wrong("split_lock_detect=off", ""),
        Some(mode) => Judgement::good(format!("split_lock_detect={mode}")),
        None => Judgement::good("warn, the kernel's default"),
    })
}

fn efi_runtime(context: &Context<'_>, _: &Setting) -> Judgement {
    let host = context.host;
    let Some(line) = judge::command_line(host) else { return judge::no_command_line(host) };
    if host.firmware.is_uefi == Reading::Known(false) {
        return Judgement::not_applicable("the host was not started by UEFI").at("/sys/firmware/efi");
    }
    let options: Vec<&str> = line.all("efi").flatten().flat_map(|value| value.split(',')).collect();
    let asked = options.iter().rev().find(|option| matches!(**option, "noruntime" | "runtime"));
    let is_built_off = matches!(host.kernel.config_option("EFI_DISABLE_RUNTIME"), Reading::Known(Some(_)));
    if asked == Some(&"noruntime") || line.has("noefi") {
        return Judgement::good("efi=noruntime").at("/proc/cmdline");
    }
    if asked.is_none() && is_built_off {
        let because = "this kernel is built with CONFIG_EFI_DISABLE_RUNTIME";
        return judge::good_because("off", because).at("/proc/cmdline");
    }
    match &host.tasks.workqueue_cpus {
        Reading::Known(cpus) if cpus.is_disjoint(&context.allocation.isolated) => {
            judge::good_because(format!("on {cpus:#}"), "unbound work stays on these CPUs")
        }
        Reading::Known(cpus) => Judgement::wrong(
            format!("on {cpus:#}"),
            format!("calls may run on isolated {:#}", cpus.intersection(&context.allocation.isolated)),
        ),
        other => return judge::missing(other, WORKQUEUES),
    }
    .at(WORKQUEUES)
}

fn iommu_pt(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    if context.host.firmware.iommu_count == Reading::Known(0) {
        return Judgement::not_applicable("the kernel uses no IOMMU").at("/sys/class/iommu");
    }
    let is_asked = line.all("iommu").flatten().any(|value| value.split(',').any(|word| word == "pt"));
    match context.host.file(IOMMU_TYPE) {
        Reading::Known(kind) if kind == "identity" => Judgement::good("identity"),
        Reading::Known(kind) if is_asked => {
            Judgement::not_in_force(format!("iommu=pt, but {kind}"), "the kernel translates addresses")
        }
        Reading::Known(kind) => Judgement::wrong(kind, "each buffer of a device is mapped and unmapped"),
        Reading::Absent if is_asked => Judgement::good("iommu=pt"),
        other => return judge::missing(&other, IOMMU_TYPE),
    }
    .at(IOMMU_TYPE)
}

fn console_serial(context: &Context<'_>, _: &Setting) -> Judgement {
    const PRINTK: &str = "/proc/sys/kernel/printk";
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let consoles = serial_consoles(line);
    if consoles.is_empty() {
        return Judgement::good("none").at("/proc/cmdline");
    }
    let level = context.host.sysctl("kernel.printk");
    let level = level.parse(PRINTK, "numbers", |text| text.split_whitespace().next()?.parse::<u32>().ok());
    let judgement = match level {
        Reading::Known(level) if level <= QUIET_LEVEL => judge::good_because(
            consoles.join(" "),
            format!("kernel.printk is {level}: it prints no warnings"),
        ),
        Reading::Absent | Reading::Denied | Reading::Unparsable(_) => return judge::missing(&level, PRINTK),
        Reading::Known(_) => {
            Judgement::wrong(consoles.join(" "), "it prints every message of the kernel with interrupts off")
        }
    };
    judgement.at("/proc/cmdline")
}
