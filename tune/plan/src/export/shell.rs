//! One script that applies the plan on a host without lowlat: `show`, `apply`, `undo`.

use super::brief::Brief;
use super::grub::BootChange;
use super::text::{each_after, here_document, note, shell_word};
use super::verbs::{Calls, Section};
use super::{ExportedFile, Format};

pub(super) const FORMAT: Format = Format {
    name: "shell",
    about: "one script that shows, applies and undoes the plan without lowlat",
    files: |brief| vec![script(brief)],
};

pub(super) const CORE: &str = include_str!("sh/core.sh");
pub(super) const IRQS: &str = include_str!("sh/irqs.sh");
pub(super) const THREADS: &str = include_str!("sh/threads.sh");
pub(super) const SERVICES: &str = include_str!("sh/services.sh");
pub(super) const UNDO: &str = include_str!("sh/undo.sh");
const NICS: &str = include_str!("sh/nics.sh");
const FILES: &str = include_str!("sh/files.sh");
const BOOT: &str = include_str!("sh/boot.sh");
const MAIN: &str = include_str!("sh/main.sh");

fn script(brief: &Brief<'_>) -> ExportedFile {
    let calls = Calls::of(brief);
    let boot = BootChange::of(brief);
    let mut text = head(brief);
    text += &format!(
        "set -u\n\nstate_below_root=/var/lib/lowlat-export\nplan_id={}\nonline_cpus={}\n",
        shell_word(&brief.plan.id()),
        shell_word(&brief.context.host.topology.online.to_list()),
    );
    text += "\n# ---- The plan ----";
    text += &"-".repeat(98);
    text += "\n\n# Applied now, and again after each boot.\n";
    text += &format!("plan_run_time() {{\n{}}}\n", calls.body(|section| !section.is_kept()));
    text +=
        &format!("\n# Files, which survive a reboot.\nplan_files() {{\n{}}}\n", calls.body(Section::is_kept));
    text += &plan_boot(brief, &boot);
    text.push('\n');
    for part in parts(&calls, &boot) {
        text += part;
    }
    ExportedFile { path: "lowlat-tune.sh".to_owned(), is_program: true, text }
}

fn head(brief: &Brief<'_>) -> String {
    let mut text = String::from("#!/bin/sh\n");
    text += &brief.header("Tunes a host for low latency, and rolls the changes back.");
    text += "#\n";
    text += &note(
        "Needs sh, coreutils and util-linux, and, if the plan uses them, systemctl, ethtool, and update-grub or \
         grubby. `show` changes nothing. `apply` saves each old value in /var/lib/lowlat-export before it changes it. `undo` restores them, except values that have changed since. Exit codes: 0 done, 1 done in part, 2 nothing done.",
    );
    text += &note(
        "A reboot resets values of the kernel: apply them again after each one. Boot parameters take effect at the \
         next boot, whose /proc/cmdline should be:",
    );
    text += &format!("#   {}\n", brief.planned_line());
    text + &each_after("#\n", [brief.warnings("# ", |_| true), brief.left_out("# ", |_| true)])
}

fn plan_boot(brief: &Brief<'_>, boot: &BootChange) -> String {
    if boot.is_empty() {
        return "\nplan_boot() {\n    :\n}\n".to_owned();
    }
    let mut text = String::from(
        "\n# Boot parameters, from the next boot on.\nplan_boot() {\n    section 'Boot \
         parameters'\n",
    );
    let lists = [&boot.words, &boot.replaced, &boot.old_words].map(|words| shell_word(&words.join(" ")));
    text += &format!("    boot_parameters \\\n        {}\n}}\n", lists.join(" \\\n        "));
    text += &format!("\ngrub_drop_in() {{\n    cat {}}}\n", here_document(&boot.drop_in(brief)));
    text
}

/// The shell functions that the plan needs.
fn parts(calls: &Calls, boot: &BootChange) -> Vec<&'static str> {
    let has_files = calls.has(Section::Files) || !boot.is_empty();
    [
        (true, CORE),
        (calls.has(Section::Interrupts), IRQS),
        (calls.has(Section::Threads) || calls.has(Section::Policies), THREADS),
        (calls.has(Section::Interfaces), NICS),
        (has_files, FILES),
        (calls.has(Section::Services), SERVICES),
        (!boot.is_empty(), BOOT),
        (true, UNDO),
        (true, MAIN),
    ]
    .into_iter()
    .filter_map(|(is_needed, part)| is_needed.then_some(part))
    .collect()
}
