//! A TuneD profile: tuned.conf, its variables, and the script that they call.

use super::boot_words::{BootWord, boot_words, expected_line, in_the_way};
use super::brief::Brief;
use super::sysctl::SysctlKeys;
use super::text::{each_after, item, note, one_line, shell_word, tuned_word};
use super::{ExportedFile, Format};
use crate::{planner, warnings::TUNED_INSTALLED};
use lowlat_settings::{
    Setting,
    change::{Target, grammar::numbers},
};

pub(super) const FORMAT: Format =
    Format { name: "tuned", about: "a TuneD profile: tuned.conf, variables, helper script", files };

/// Values from TuneD's variables instead of literal ones.
const ISOLATED: &str = "${isolated_cores}";
const HOUSEKEEPING: &str = "${housekeeping_cpus}";
const MASK: &str = "${not_isolated_cpumask}";

fn files(brief: &Brief<'_>) -> Vec<ExportedFile> {
    let name = profile_name(brief);
    let words = boot_words(brief);
    let file = |path: String, is_program, text| ExportedFile { path, is_program, text };
    let mut files = vec![file(format!("{name}/tuned.conf"), false, tuned_conf(brief, name, &words))];
    if has_isolated(brief) {
        files.push(file(format!("{name}/variables.conf"), false, variables(brief, name)));
        files.push(file(format!("{name}/script.sh"), true, helper(brief)));
    }
    files.extend(role(brief).map(|text| file(format!("{name}/role.toml"), false, text)));
    let added = filled_in(brief, &words);
    let expected = expected_line(brief, &added);
    files.push(file("README".to_owned(), false, readme(brief, name, &in_the_way(brief, &added))));
    files.push(file("expected-cmdline".to_owned(), false, expected + "\n"));
    files
}

/// cpu-partitioning does not load if no CPU is isolated; then its parent is included instead.
fn has_isolated(brief: &Brief<'_>) -> bool {
    !brief.isolated().is_empty()
}

/// The guide's name, by which the audit finds it.
fn profile_name(brief: &Brief<'_>) -> &'static str {
    if brief.is_guide() { "HPELowLatency" } else { "lowlat-trading" }
}

/// The set words, with numbers instead of TuneD's variables.
fn filled_in(brief: &Brief<'_>, words: &[BootWord]) -> String {
    let mask = mask_of_tuned(brief);
    let line = cmdline(brief, words);
    line.replace(ISOLATED, &brief.isolated().to_list())
        .replace(HOUSEKEEPING, &brief.housekeeping().to_list())
        .replace(MASK, &mask)
}

/// TuneD's format of a mask: groups of eight digits, as many as the highest CPU needs. It inverts the
/// isolated CPUs over all present CPUs, so CPUs of neither set count as housekeeping.
fn mask_of_tuned(brief: &Brief<'_>) -> String {
    let topology = &brief.context.host.topology;
    let others = topology.online.union(&topology.offline).difference(brief.isolated());
    let groups = others.highest().map_or(1, |cpu| cpu / 32 + 1);
    others.to_mask_padded(groups * 32)
}

/// The set words, with TuneD's variables instead of numbers.
fn cmdline(brief: &Brief<'_>, words: &[BootWord]) -> String {
    let set = words.iter().filter_map(|word| match word {
        BootWord::Set(word) => Some(with_variables(brief, word)),
        BootWord::LeftOut(..) => None,
    });
    let mut set: Vec<String> = set.collect();
    // TuneD may lose the first word.
    if !set.is_empty() && set.first().is_none_or(|first| first != "quiet") {
        set.insert(0, "quiet".to_owned());
    }
    one_line(&set.join(" "))
}

/// Parameters with CPUs, in which 0 is a CPU and not a number.
const OF_CPUS: [&str; 4] = ["irqaffinity", "isolcpus", "nohz_full", "rcu_nocbs"];

fn with_variables(brief: &Brief<'_>, word: &str) -> String {
    let word = word.replace("{isolated}", ISOLATED).replace("{mask}", MASK);
    let Some((name, value)) = word.split_once('=') else { return word };
    if !has_isolated(brief) || !OF_CPUS.contains(&name) {
        return word;
    }
    let (isolated, housekeeping) = (brief.isolated().to_list(), brief.housekeeping().to_list());
    if value == housekeeping {
        return format!("{name}={HOUSEKEEPING}");
    }
    match value.strip_suffix(&isolated) {
        Some(flags) if flags.is_empty() || flags.ends_with(',') => format!("{name}={flags}{ISOLATED}"),
        _ => word,
    }
}

fn tuned_conf(brief: &Brief<'_>, name: &str, words: &[BootWord]) -> String {
    let mut text = brief.header("TuneD profile for low latency.");
    let parent = if has_isolated(brief) { "cpu-partitioning" } else { "network-latency" };
    text += &format!(
        "\n[main]\nsummary=Low latency, lowlat's profile {}\ninclude={parent}\n",
        brief.context.profile
    );
    if has_isolated(brief) {
        text += "\n[variables]\n";
        text += &note("Replaces /etc/tuned/cpu-partitioning-variables.conf, which is not changed.");
        text += &format!("include=/etc/tuned/{name}/variables.conf\n");
    }
    if brief.is_guide() {
        text += "\n[disk]\n# The guide's value; it also affects rotating disks.\nelevator=none\n";
    }
    text += &sysctl_section(brief);
    text += &sysfs_section(brief);
    text += &bootloader_section(brief, words);
    text += &scheduler_section(brief, name);
    text
}

fn sysctl_section(brief: &Brief<'_>) -> String {
    let keys = SysctlKeys::of(brief);
    let mut text = String::from("\n[sysctl]\n");
    for key in &keys.set {
        text += &format!("{}={}\n", tuned_word(&key.name), tuned_word(&key.value));
    }
    let nmi = "kernel.nmi_watchdog";
    let is_set = keys.set.iter().any(|key| key.name == nmi);
    let present = numbers(brief.context.host.sysctl(nmi).text());
    if let Some(present) = present
        && has_isolated(brief)
        && !is_set
        && !is_accepted(brief, "boot.nmi_watchdog")
    {
        text += &note(
            "cpu-partitioning disables this watchdog; the risk is not accepted (boot.nmi_watchdog), so it is \
             unchanged.",
        );
        text += &format!("{nmi}={present}\n");
    }
    for (key, why) in &keys.risky {
        text += &format!("# {}={}\n", one_line(&key.name), one_line(&key.value));
        text += &item("# ", why);
    }
    text
}

/// Values below /sys, including those that the kernel moved to debugfs.
fn sysfs_section(brief: &Brief<'_>) -> String {
    let mut text = String::from("\n[sysfs]\n");
    let parents = note(
        "cpu-partitioning and its parents keep workqueues, interrupts, threads and services on housekeeping CPUs, \
         set the governor and disable transparent huge pages.",
    );
    if has_isolated(brief) {
        text += &parents;
    }
    for change in &brief.plan.changes {
        if let Target::File { path } = &change.target
            && path.starts_with("/sys/")
            && !path.starts_with("/sys/block/")
        {
            text += &format!("{}={}\n", tuned_word(path), tuned_word(&change.after));
        }
    }
    if has_isolated(brief) && !is_accepted(brief, "boot.mce") {
        text += &note(
            "cpu-partitioning disables the polling for corrected memory errors; the risk is not accepted \
             (boot.mce), so it stays enabled.",
        );
        text += "/sys/devices/system/machinecheck/machinecheck*/ignore_ce=0\n";
    }
    text
}

fn is_accepted(brief: &Brief<'_>, id: &str) -> bool {
    brief.context.role.accepts(id)
}

fn bootloader_section(brief: &Brief<'_>, words: &[BootWord]) -> String {
    let mut text = String::from("\n[bootloader]\n");
    text += &note(
        "One key contains the whole line in order. The parents' keys are emptied, because a later TuneD adds others \
         there (skew_tick=1, isolcpus=), and a child's cmdline= silently replaces a parent's.",
    );
    text += "cmdline_network_latency=\ncmdline_cpu_part=\n";
    text += &note(
        "\"quiet\" comes first because TuneD has been seen to lose the first word on the way to grub.cfg.",
    );
    if brief.is_guide() {
        text += &note(
            "2MB is the guide's spelling; the kernel reads it as 2M. intel_pstate=disable has no effect on AMD. The \
             kernel reads max_cstate=0 as 1.",
        );
    }
    text += &format!("cmdline={}\n", cmdline(brief, words));
    let left: Vec<&BootWord> = words.iter().filter(|word| matches!(word, BootWord::LeftOut(..))).collect();
    if !left.is_empty() {
        text += "# Left out:\n";
    }
    for word in left {
        if let BootWord::LeftOut(word, why) = word {
            text += &item("# ", &format!("{}  {why}", with_variables(brief, word)));
        }
    }
    text
}

/// Kernel threads with real-time policies, as in the guide.
fn scheduler_section(brief: &Brief<'_>, name: &str) -> String {
    if !brief.is_guide() || !has_isolated(brief) {
        return String::new();
    }
    let mut text = String::from("\n[scheduler]\n");
    text += &note(
        "Priority of the rule, policy, real-time priority, CPUs, threads. * keeps the CPUs: each ksoftirqd is bound \
         to its CPU, and the kernel rejects the guide's mask with EINVAL.",
    );
    for (id, group) in [("kthread.ksoftirqd", "ksoftirqd"), ("kthread.rcub", "rcub")] {
        let Some(setting) = brief.context.catalogue.find(id) else { continue };
        let line = format!("group.{group}=${{f:exec:/etc/tuned/{name}/script.sh:{group}}}\n");
        if is_taken(brief, setting) {
            text += &line;
        } else {
            text += &format!("# {line}");
            text += &item("# ", &format!("{id} ({}): {}", setting.risk.word(), setting.cost));
        }
    }
    text
}

fn is_taken(brief: &Brief<'_>, setting: &Setting) -> bool {
    !planner::is_asked_for(brief.context, setting) || is_accepted(brief, setting.id)
}

fn variables(brief: &Brief<'_>, name: &str) -> String {
    let mut text = brief.header("CPUs for the profile in tuned.conf.");
    text += &format!("housekeeping_cpus=${{f:exec:/etc/tuned/{name}/script.sh:housekeeping}}\n");
    text += &format!("isolated_cores=${{f:exec:/etc/tuned/{name}/script.sh:isolated}}\n");
    if brief.is_guide() {
        text += &note(
            "The guide's value. TuneD 2.16 and later would add isolcpus= for it, which the guide's line does not \
             have; the profile's cmdline= replaces that.",
        );
        text += &format!("no_balance_cores=${{f:exec:/etc/tuned/{name}/script.sh:nobalance}}\n");
    }
    text
}

/// Prints numbers for TuneD: from lowlat if it is installed, otherwise fixed ones.
fn helper(brief: &Brief<'_>) -> String {
    let mut text = String::from("#!/bin/sh\n");
    text += &brief.header("Prints numbers for the TuneD profile: script.sh WHICH, without a line break.");
    let (house, isolated) = (brief.housekeeping(), brief.isolated());
    text += &HELPER
        .replace("@HOUSE@", &shell_word(&house.to_list()))
        .replace("@ISOLATED@", &shell_word(&isolated.to_list()))
        .replace("@RCUB@", &shell_word(&format!("0:f:4:{}:rcub.*", house.to_mask())));
    text
}

const HELPER: &str = include_str!("sh/tuned.sh");

/// The options of the export, so lowlat on the host chooses the same CPUs.
fn role(brief: &Brief<'_>) -> Option<String> {
    let role = brief.context.role;
    let quoted = |text: &str| format!("{:?}", one_line(text));
    let mut lines = String::new();
    if let Some(cpus) = &role.housekeeping {
        lines += &format!("housekeeping = \"{cpus}\"\n");
    }
    if let Some(cpus) = &role.isolated {
        lines += &format!("isolated = \"{cpus}\"\n");
    }
    if !role.nics.is_empty() {
        let nics: Vec<String> = role.nics.iter().map(|nic| quoted(nic)).collect();
        lines += &format!("nics = [{}]\n", nics.join(", "));
    }
    let head = brief.header("The role for which the CPUs were chosen; script.sh passes it to lowlat.");
    (!lines.is_empty()).then(|| head + &lines)
}

fn readme(brief: &Brief<'_>, name: &str, in_the_way: &[String]) -> String {
    let mut text = brief.readme_head(&format!("TuneD profile {name}"));
    if !in_the_way.is_empty() {
        text += "\nBefore you install it\n";
        text += &item(
            "  ",
            &format!(
                "First remove {} from the boot loader's own command line: GRUB_CMDLINE_LINUX and GRUB_CMDLINE_LINUX_DEFAULT in \
             /etc/default/grub, or with `grubby --update-kernel=ALL --remove-args=...`.",
                in_the_way.join(" ")
            ),
        );
        text += &item(
            "  ",
            "TuneD only appends words to the line. Of isolcpus=, nohz_full= and \
             default_hugepagesz= the kernel uses the first and ignores the others, so the profile's have no effect \
             while these words remain. expected-cmdline is the line without them.",
        );
    }
    text += &README.replace("@NAME@", name);
    // The TuneD warning is about parameters that do not go through TuneD.
    let warnings = brief.warnings("", |warning| warning != TUNED_INSTALLED);
    let left_out = brief.left_out("", |left| !DONE_HERE.contains(&left.setting.as_str()));
    text + &each_after("\n", [warnings, left_out])
}

/// Rows that the plan leaves to the user and this export covers.
const DONE_HERE: &[&str] =
    &["service.tuned.profile", "service.tuned.include", "service.one_time", "sysctl.file.100-lowlatency"];

const README: &str = include_str!("sh/tuned-readme.txt");
