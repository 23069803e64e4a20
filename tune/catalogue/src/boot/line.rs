//! The command line as a whole: words that get lost, and space in the boot loader's file.

use super::super::tuned;
use super::{BOOT, GUIDE, HAZARDS};
use lowlat_host::{CpuSet, Profile, Reading};
use lowlat_settings::{Context, Impact, Judgement, Setting, Verdict, Want, judge};

/// Size of GRUB's environment block. It cannot grow, and a write that does not fit fails.
const GRUBENV_BYTES: usize = 1024;

const GRUBENVS: &[&str] = &["/boot/grub2/grubenv", "/boot/grub/grubenv", "/boot/efi/EFI/*/grubenv"];

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.quiet",
        name: "quiet",
        reason: "Keeps boot messages off the console. The guide puts it first because TuneD or grubby may lose the \
                 first word of the line.",
        guide: Want::State("present"),
        hazard: "Cosmetic by itself; see boot.first_token for its purpose.",
        sources: &[GUIDE],
        ..BOOT
    },
    Setting {
        id: "boot.first_token",
        not_planned: "add the lost word to the command line manually, after another word: the plan does not use TuneD",
        name: "first word of TuneD's command line",
        reason: "TuneD and grubby have been seen to join the first parameter that they add to the word \
                 before it. That parameter then has no effect, and nothing reports it.",
        impact: Impact::Medium,
        effective: "The first word of TUNED_BOOT_CMDLINE in /etc/tuned/bootcmdline is in /proc/cmdline.",
        reads: &[lowlat_settings::change::tuned::BOOTCMDLINE],
        both: Want::State("not lost"),
        hazard: "The guide's workaround is to put \"quiet\" first, or to add the lost word to \
                 GRUB_CMDLINE_LINUX.",
        sources: &[GUIDE, HAZARDS, "TuneD issue 268"],
        judge: first_token,
        ..BOOT
    },
    Setting {
        id: "boot.grubenv_limit",
        not_planned: "free some space in grubenv, or set the command line in the boot loader's own configuration",
        name: "grubenv",
        reason: "GRUB's environment block has 1,024 bytes in total. A command line that names each CPU \
                 does not fit on a large host, and the write fails. The host then boots with the old \
                 parameters or none.",
        impact: Impact::Medium,
        effective: "After the reboot, the command line in grubenv equals /proc/cmdline.",
        reads: GRUBENVS,
        trading: Want::State("the command line fits with CPU lists as ranges"),
        guide: Want::State("the command line fits with every CPU written out"),
        hazard: "The guide's script writes every CPU out. On hosts with 128 or more CPUs that can overflow \
                 grubenv. Write ranges instead.",
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
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let Some(first) = asked.tokens().first() else {
        return Judgement::not_applicable("TuneD requests no boot parameters")
            .at(lowlat_settings::change::tuned::BOOTCMDLINE);
    };
    let spelled = tuned::spell(first);
    let judgement = if tuned::is_on_line(first, line) {
        Judgement::good(spelled)
    } else if asked.tokens().iter().skip(1).any(|token| tuned::is_on_line(token, line)) {
        let because = "words after it are active, but it is not: it was lost on the way to the boot loader";
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
        let because = "the CPU lists do not fit beside the existing content; write ranges, or set the \
                       command line in the boot loader's own configuration";
        return Judgement::wrong(observed, because).at(path);
    }
    Judgement::good(observed).at(path)
}

/// Parameters that contain CPU lists and are written to the block.
const LISTS: [&str; 4] = ["nohz_full", "rcu_nocbs", "isolcpus", "irqaffinity"];

/// Bytes that CPU lists already take in the block.
fn list_bytes_held(grubenv: &str) -> usize {
    let is_list = |token: &&str| {
        token
            .split_once('=')
            .is_some_and(|(name, _)| LISTS.contains(&name.trim_start_matches("tuned_params=")))
    };
    grubenv.split_ascii_whitespace().filter(is_list).map(|token| token.len() + 1).sum()
}

/// Bytes that the profile's CPU lists take, written as the profile writes them.
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
