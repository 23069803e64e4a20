//! Kernel messages on the consoles.

use super::{KERNEL_DOC, SYSCTL};
use crate::boot::kernel::{QUIET_LEVEL, serial_consoles};
use lowlat_settings::{
    Context, Judgement, Setting, Want,
    change::{Proposal, Target},
    judge,
};

const KEY: &str = "kernel.printk";
const PATH: &str = "/proc/sys/kernel/printk";

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "sysctl.kernel.printk",
    acts_when: "the kernel prints messages",
    change: silence,
    name: KEY,
    reason: "The first number is the level up to which messages are printed on the consoles. A serial console prints them \
             with interrupts off. They are in the journal either way.",
    cost: "Warnings no longer appear on the console, only errors.",
    reads: &[PATH],
    trading: Want::State("4 or less where a console is serial"),
    sources: &[KERNEL_DOC, "kernel Documentation/core-api/real-time/hardware.rst"],
    judge: printk,
    ..SYSCTL
}];

/// The four numbers of the file.
fn levels(text: &str) -> Option<Vec<u32>> {
    let numbers: Option<Vec<u32>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
    numbers.filter(|numbers| numbers.len() == 4)
}

fn printk(context: &Context<'_>, _: &Setting) -> Judgement {
    let consoles = context.host.kernel.command_line.known().map(serial_consoles).unwrap_or_default();
    judge::known(&context.host.file(PATH).parse(PATH, "four numbers", levels), PATH, |levels| {
        let observed = levels.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        match levels.first() {
            Some(level) if *level <= QUIET_LEVEL => Judgement::good(observed),
            _ if consoles.is_empty() => judge::good_because(observed, "no console is serial"),
            _ => Judgement::wrong(observed, format!("{} prints warnings", consoles.join(" "))),
        }
    })
}

/// Sets the first number to the quiet level; the others are unchanged.
fn silence(context: &Context<'_>, _: &Setting) -> Proposal {
    let before = context.host.sysctl(KEY);
    let Some(levels) = before.known().and_then(|text| levels(text)) else { return Proposal::default() };
    let others = levels.iter().skip(1);
    let after = std::iter::once(&QUIET_LEVEL).chain(others).map(u32::to_string).collect::<Vec<_>>().join(" ");
    Proposal::default().step(Target::Sysctl { key: KEY.to_owned() }, before, after)
}
