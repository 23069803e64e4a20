//! Warnings about a plan's values. Their texts are in one place.

use lowlat_host::{BOOT_CPU, BOOT_CPU_ISOLATED, Profile, Reading, cmdline::LINE_BYTES_MAX};
use lowlat_settings::{
    Context,
    change::{BootToken, Change, Target},
};

/// The size of GRUB's environment block.
const GRUBENV_BYTES: usize = 1024;
const GRUBENVS: &[&str] = &["/boot/grub2/grubenv", "/boot/grub/grubenv", "/boot/efi/EFI/*/grubenv"];
/// Rows that disable hang detection, or move it.
const WATCHDOGS: [&str; 5] = [
    "boot.nmi_watchdog",
    "boot.nosoftlockup",
    "sysctl.kernel.watchdog",
    "sysctl.kernel.watchdog_cpumask",
    "sysctl.kernel.watchdog_thresh",
];

/// TuneD is installed; boot parameters do not go through it.
pub(super) const TUNED_INSTALLED: &str = "TuneD is installed, and its boot loader support has been seen to lose the first word that it adds. The \
     new parameters do not go through TuneD. After the reboot, check that /proc/cmdline contains each of them.";

pub(super) fn of(context: &Context<'_>, changes: &[Change]) -> Vec<String> {
    let mut warnings = Vec::new();
    for change in changes {
        if let Target::CommandLine { tokens } = &change.target {
            warnings.extend(of_tokens(context, tokens).into_iter().map(str::to_owned));
            warnings.extend(of_line(context, change));
        }
    }
    warnings.extend(watchdogs(context, changes));
    warnings.extend(real_time(changes));
    warnings.extend(unknown_irqs(context, changes));
    warnings.extend(other_processor(context).filter(|_| !changes.is_empty()));
    warnings
}

fn of_tokens(context: &Context<'_>, tokens: &[BootToken]) -> Vec<&'static str> {
    let is = |name: &str, value: &str| {
        tokens.iter().any(|token| token.name == name && token.value.as_deref() == Some(value))
    };
    let mut warnings = Vec::new();
    if context.allocation.isolated.contains(BOOT_CPU) {
        warnings.push(BOOT_CPU_ISOLATED);
    }
    if is("pcie_aspm", "off") {
        warnings.push(
            "pcie_aspm=off disables PCI Express hotplug slots: network interfaces that are named by slot (ens1) can \
             come back with another name (enp65s0) and without their address. Make sure that you can reach the host in another way before you reboot.",
        );
    }
    if is("idle", "poll") && context.host.topology.has_smt() {
        warnings.push(
            "idle=poll on a host with SMT: an idle CPU spins and slows the other thread of its core. Disable the \
             second threads first, or leave idle=poll out.",
        );
    }
    warnings
}

fn of_line(context: &Context<'_>, change: &Change) -> Vec<String> {
    let mut warnings = Vec::new();
    let (before, after) = (change.before.text().len(), change.after.len());
    if after > LINE_BYTES_MAX {
        warnings.push(format!(
            "The new command line has {after} bytes, and the kernel silently truncates it after {LINE_BYTES_MAX}."
        ));
    }
    let grubenvs = GRUBENVS.iter().flat_map(|glob| context.host.files_matching(glob));
    for (path, reading) in grubenvs {
        let Reading::Known(text) = reading else { continue };
        let needed = text.trim_end_matches('#').len().saturating_add(after.saturating_sub(before));
        if needed > GRUBENV_BYTES {
            warnings.push(format!(
                "{path} has {GRUBENV_BYTES} bytes, and the command line needs {needed}. Set the line in the boot \
                 loader's configuration instead: a write that does not fit keeps the old line or loses it."
            ));
        }
    }
    if !context.host.services.tuned.profile.is_absent() {
        warnings.push(TUNED_INSTALLED.to_owned());
    }
    warnings
}

/// Several rows disable hang detection, including those that the host already has.
fn watchdogs(context: &Context<'_>, changes: &[Change]) -> Option<String> {
    let ids: Vec<&str> = WATCHDOGS
        .into_iter()
        .filter(|id| changes.iter().any(|change| change.settings.iter().any(|setting| setting == id)))
        .collect();
    let is_off = ids.iter().any(|id| !id.starts_with("sysctl.kernel.watchdog_"))
        || context.host.sysctl("kernel.watchdog").text() == "0";
    (is_off && ids.len() > 1).then(|| {
        format!(
            "{} of these changes all disable hang detection: {}. One is enough, and nohz_full= alone keeps the \
             detectors off isolated CPUs.",
            ids.len(),
            ids.join(", ")
        )
    })
}

fn real_time(changes: &[Change]) -> Option<String> {
    let is_unlimited = |change: &Change| {
        matches!(&change.target, Target::Sysctl { key } if key == "kernel.sched_rt_runtime_us")
            && change.after == "-1"
    };
    changes.iter().any(is_unlimited).then(|| {
        "kernel.sched_rt_runtime_us=-1: a SCHED_FIFO thread that spins can starve kernel threads of its CPU until \
         the host hangs."
            .to_owned()
    })
}

/// The processors that guide 57037 is for (its chapters 1 and 2).
const GUIDE_PROCESSORS: [&str; 3] = ["7F32", "7F52", "7F72"];

/// Returns whether guide 57037 is for this processor model.
pub fn is_processor_of_guide(model: &str) -> bool {
    model.contains("EPYC") && GUIDE_PROCESSORS.iter().any(|sku| model.contains(sku))
}

fn other_processor(context: &Context<'_>) -> Option<String> {
    let model = context.host.cpu.model_name.known().filter(|_| context.profile == Profile::Guide57037)?;
    (!is_processor_of_guide(model)).then(|| {
        format!(
            "Guide 57037 was made on EPYC 7F32 and also suits 7F52 and 7F72. This host has {model}: the guide says \
             that it may not suit other processors. Compare with profile trading, and measure both with `lowlat \
             jitter`."
        )
    })
}

/// Only debugfs shows whether the kernel manages an interrupt.
fn unknown_irqs(context: &Context<'_>, changes: &[Change]) -> Option<String> {
    let irqs = &context.host.interrupts.irqs;
    let is_unknown = |change: &&Change| {
        matches!(&change.target, Target::IrqAffinity { irq, .. }
            if irqs.iter().any(|found| found.number == *irq && !found.is_managed.is_known()))
    };
    let count = changes.iter().filter(is_unknown).count();
    (count > 0).then(|| {
        format!(
            "It is unknown whether the kernel manages {count} of the interrupts (debugfs shows it to root). The \
             kernel rejects moving managed interrupts with EIO; isolcpus=managed_irq keeps them off isolated CPUs."
        )
    })
}
