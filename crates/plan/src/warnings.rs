//! What the user should know before a plan is applied: the traps that its own values hold.

use lowlat_host::{Reading, cmdline::LINE_BYTES_MAX};
use lowlat_settings::{
    Context,
    change::{BootToken, Change, Target},
};

/// The size of GRUB's environment block.
const GRUBENV_BYTES: usize = 1024;
const GRUBENVS: &[&str] = &["/boot/grub2/grubenv", "/boot/grub/grubenv", "/boot/efi/EFI/*/grubenv"];
/// Rows that switch the detection of hangs off, or move it.
const WATCHDOGS: [&str; 5] = [
    "boot.nmi_watchdog",
    "boot.nosoftlockup",
    "sysctl.kernel.watchdog",
    "sysctl.kernel.watchdog_cpumask",
    "sysctl.kernel.watchdog_thresh",
];

pub(super) fn of(context: &Context<'_>, changes: &[Change]) -> Vec<String> {
    let mut warnings = Vec::new();
    for change in changes {
        if let Target::CommandLine { tokens } = &change.target {
            warnings.extend(of_tokens(context, tokens));
            warnings.extend(of_line(context, change));
        }
    }
    warnings.extend(watchdogs(context, changes));
    warnings.extend(real_time(changes));
    warnings.extend(unknown_irqs(context, changes));
    warnings
}

fn of_tokens(context: &Context<'_>, tokens: &[BootToken]) -> Vec<String> {
    let is = |name: &str, value: &str| {
        tokens.iter().any(|token| token.name == name && token.value.as_deref() == Some(value))
    };
    let mut warnings = Vec::new();
    if is("pcie_aspm", "off") {
        warnings.push(
            "pcie_aspm=off takes PCI Express hotplug slots from the kernel: network interfaces that are named by slot \
             (ens1) can come back under another name (enp65s0) and without their address. Have another way into the \
             host before the reboot."
                .to_owned(),
        );
    }
    if is("idle", "poll") && context.host.topology.has_smt() {
        warnings.push(
            "idle=poll on a host with SMT: an idle CPU spins and slows the other thread of its core. Take the second \
             threads off first, or leave idle=poll out."
                .to_owned(),
        );
    }
    warnings
}

fn of_line(context: &Context<'_>, change: &Change) -> Vec<String> {
    let mut warnings = Vec::new();
    let (before, after) = (change.before.text().len(), change.after.len());
    if after > LINE_BYTES_MAX {
        warnings.push(format!(
            "The new command line has {after} bytes, and the kernel keeps {LINE_BYTES_MAX}: what is behind is cut off \
             without a word."
        ));
    }
    let grubenvs = GRUBENVS.iter().flat_map(|glob| context.host.files_matching(glob));
    for (path, reading) in grubenvs {
        let Reading::Known(text) = reading else { continue };
        let needed = text.trim_end_matches('#').len().saturating_add(after.saturating_sub(before));
        if needed > GRUBENV_BYTES {
            warnings.push(format!(
                "{path} would need {needed} of its {GRUBENV_BYTES} bytes: set the line in the boot loader's own \
                 configuration, since a write that does not fit leaves the old line or none."
            ));
        }
    }
    if !context.host.services.tuned.profile.is_absent() {
        warnings.push(
            "TuneD is installed, and its boot loader support has been seen to lose the first word that it adds. The new \
             parameters do not go through TuneD; after the reboot look that each stands in /proc/cmdline."
                .to_owned(),
        );
    }
    warnings
}

/// Several rows that say the same. Those that the host has already count too.
fn watchdogs(context: &Context<'_>, changes: &[Change]) -> Option<String> {
    let planned: Vec<&str> = WATCHDOGS
        .into_iter()
        .filter(|id| changes.iter().any(|change| change.settings.iter().any(|setting| setting == id)))
        .collect();
    let is_off = planned.iter().any(|id| !id.starts_with("sysctl.kernel.watchdog_"))
        || context.host.sysctl("kernel.watchdog").text() == "0";
    (is_off && planned.len() > 1).then(|| {
        format!(
            "{} of these changes switch off the detection of hangs, and say the same thing: {}. One is enough, and \
             nohz_full= alone keeps the detectors off isolated CPUs.",
            planned.len(),
            planned.join(", ")
        )
    })
}

fn real_time(changes: &[Change]) -> Option<String> {
    let is_unlimited = |change: &Change| {
        matches!(&change.target, Target::Sysctl { key } if key == "kernel.sched_rt_runtime_us")
            && change.after == "-1"
    };
    changes.iter().any(is_unlimited).then(|| {
        "kernel.sched_rt_runtime_us=-1: a SCHED_FIFO thread that spins can starve kernel threads of its CPU until the \
         host hangs."
            .to_owned()
    })
}

/// Whether the kernel manages an interrupt shows in debugfs only.
fn unknown_irqs(context: &Context<'_>, changes: &[Change]) -> Option<String> {
    let irqs = &context.host.interrupts.irqs;
    let is_unknown = |change: &&Change| {
        matches!(&change.target, Target::IrqAffinity { irq, .. }
            if irqs.iter().any(|found| found.number == *irq && !found.is_managed.is_known()))
    };
    let count = changes.iter().filter(is_unknown).count();
    (count > 0).then(|| {
        format!(
            "Of {count} interrupts it is not known whether the kernel manages them (debugfs tells root). It refuses to \
             move those that it manages, with EIO; isolcpus=managed_irq keeps them off isolated CPUs."
        )
    })
}
