//! The command line as a whole: words that get lost on the way, and room in the boot loader's file.

use super::super::tuned;
use super::{BOOT, GUIDE, HAZARDS};
use lowlat_host::{CpuSet, Profile, Reading};
use lowlat_settings::{
    Context, Impact, Judgement, Setting, Verdict, Want,
    change::{Proposal, WhyLeftOut},
    judge,
};

/// The size of GRUB's environment block. It cannot grow, and a write that does not fit fails.
const GRUBENV_BYTES: usize = 1024;

const GRUBENVS: &[&str] = &["/boot/grub2/grubenv", "/boot/grub/grubenv", "/boot/efi/EFI/*/grubenv"];

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.quiet",
        name: "quiet",
        reason: "Keeps boot messages off the console. The guide puts it first because TuneD or grubby may lose the \
                 first word of the line.",
        guide: Want::State("present"),
        hazard: "Cosmetic; see boot.first_token for what it stands in for.",
        sources: &[GUIDE],
        ..BOOT
    },
    Setting {
        id: "boot.first_token",
        change: |_, _| {
            Proposal::not(
                WhyLeftOut::YourChoice,
                "put the lost word on the line by hand, behind another one: the plan does not go through TuneD",
            )
        },
        name: "first word of TuneD's command line",
        reason: "TuneD and grubby have been seen to lose the first word of the parameters they add, by joining it to \
                 the word before. Whatever stands first is then without effect, and nothing says so.",
        impact: Impact::Medium,
        effective: "The first word of TUNED_BOOT_CMDLINE in /etc/tuned/bootcmdline stands in /proc/cmdline.",
        reads: &[lowlat_settings::change::tuned::BOOTCMDLINE],
        trading: Want::State("not lost"),
        guide: Want::State("not lost"),
        hazard: "The guide's way round is to put \"quiet\" first, or the lost word into GRUB_CMDLINE_LINUX.",
        sources: &[GUIDE, HAZARDS, "TuneD issue 268"],
        judge: first_token,
        ..BOOT
    },
    Setting {
        id: "boot.grubenv_limit",
        change: |_, _| {
            Proposal::not(
                WhyLeftOut::YourChoice,
                "make room in grubenv, or set the line in the boot loader's own configuration",
            )
        },
        name: "grubenv",
        reason: "GRUB's environment block holds 1,024 bytes for everything. A line that names each CPU does not fit on \
                 a large host, and the write fails: the host then boots with the old parameters or none.",
        impact: Impact::Medium,
        effective: "The line in grubenv is the line in /proc/cmdline after the reboot.",
        reads: GRUBENVS,
        trading: Want::State("the line fits with CPU lists as ranges"),
        guide: Want::State("the line fits with every CPU written out"),
        hazard: "The guide's script writes every CPU out. On hosts of 128 CPUs and more that can overflow grubenv; \
                 write ranges.",
        sources: &[GUIDE, HAZARDS, "TuneD issues 704 and 706"],
        judge: grubenv_limit,
        ..BOOT
    },
];

fn first_token(context: &Context<'_>, _: &Setting) -> Judgement {
    let asked = match tuned::boot_command_line(context) {
        Ok(asked) => asked,
        Err(judgement) => return judgement,
    };
    let line = match judge::command_line(context.host) {
        Ok(line) => line,
        Err(judgement) => return judgement,
    };
    let Some(first) = asked.tokens().first() else {
        return Judgement::not_applicable("TuneD asks for no boot parameters")
            .at(lowlat_settings::change::tuned::BOOTCMDLINE);
    };
    let spelled = tuned::spell(first);
    let judgement = if tuned::stands_on(first, line) {
        Judgement::good(spelled)
    } else if asked.tokens().iter().skip(1).any(|token| tuned::stands_on(token, line)) {
        let because =
            "the words after it are in force and it is not: it was lost on the way to the boot loader";
        Judgement::new(Verdict::Ineffective, spelled, because)
    } else {
        Judgement::not_applicable("none of TuneD's boot parameters is in force; see service.tuned.bootloader")
    };
    judgement.at(lowlat_settings::change::tuned::BOOTCMDLINE)
}

fn grubenv_limit(context: &Context<'_>, _: &Setting) -> Judgement {
    let found = GRUBENVS
        .iter()
        .flat_map(|glob| context.host.files_matching(glob))
        .find(|(_, reading)| !reading.is_absent());
    let Some((path, reading)) = found else {
        return Judgement::not_applicable("this host has no grubenv");
    };
    let Reading::Known(text) = reading else { return judge::missing(reading, path) };
    let used_bytes = text.trim_end_matches('#').len();
    if used_bytes > GRUBENV_BYTES {
        return Judgement::wrong(format!("{used_bytes} bytes"), "the block is larger than GRUB reads")
            .at(path);
    }
    let needed_bytes = used_bytes.saturating_sub(list_bytes_held(text)) + list_bytes_wanted(context);
    let observed = format!("{needed_bytes} of {GRUBENV_BYTES} bytes");
    if needed_bytes > GRUBENV_BYTES {
        let because = "the CPU lists do not fit beside what is there; write ranges, or set the line in the boot \
                       loader's own configuration";
        return Judgement::wrong(observed, because).at(path);
    }
    Judgement::good(observed).at(path)
}

/// The parameters that hold CPU lists and are written to the block.
const LISTS: [&str; 4] = ["nohz_full", "rcu_nocbs", "isolcpus", "irqaffinity"];

/// Bytes that CPU lists take in the block already.
fn list_bytes_held(grubenv: &str) -> usize {
    let is_list = |token: &&str| {
        token
            .split_once('=')
            .is_some_and(|(name, _)| LISTS.contains(&name.trim_start_matches("tuned_params=")))
    };
    grubenv.split_ascii_whitespace().filter(is_list).map(|token| token.len() + 1).sum()
}

/// Bytes that the profile's CPU lists take, spelled as the profile spells them.
fn list_bytes_wanted(context: &Context<'_>) -> usize {
    let allocation = context.allocation;
    if allocation.isolated.is_empty() {
        return 0;
    }
    let written_out = |cpus: &CpuSet| cpus.iter().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    let tokens = match context.profile {
        Profile::Trading => vec![
            format!("nohz_full={}", allocation.isolated),
            format!("rcu_nocbs={}", allocation.isolated),
            format!("isolcpus=managed_irq,domain,{}", allocation.isolated),
            format!("irqaffinity={}", allocation.housekeeping),
        ],
        Profile::Guide57037 => vec![
            format!("nohz_full={}", written_out(&allocation.isolated)),
            format!("rcu_nocbs={}", written_out(&allocation.isolated)),
        ],
    };
    tokens.iter().map(|token| token.len() + 1).sum()
}
