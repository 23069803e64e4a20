//! TuneD: its profile, its boot parameters, and the effects of stopping it.

use crate::HAZARDS;
use lowlat_host::{CpuSet, Reading, cmdline::CommandLine};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Verdict, Want, change,
    change::tuned::GUIDE_PROFILE, compare::same_meaning, judge,
};

const VARIABLES: &str = "/etc/tuned/cpu-partitioning-variables.conf";
const PROFILES: &[&str] = &["/etc/tuned/*/tuned.conf", "/etc/tuned/profiles/*/tuned.conf"];
/// The file with the version of TuneD.
const VERSION: &str = "/usr/lib/python3*/*-packages/tuned/version.py";
/// The first TuneD that knows `rollback`; an older one logs a warning and continues.
const ROLLBACK_SINCE: (u32, u32) = (2, 21);
const SECTION_1_2: &str = "guide 57037 section 4.3.2.1.1";
const SECTION_1_4: &str = "guide 57037 section 4.3.2.1.3";

/// Profiles of TuneD that are not meant for low latency. They set their own governors and sysctls whenever
/// the daemon starts.
const CONTRARY_PROFILES: &[&str] = &[
    "accelerator-performance",
    "aws",
    "balanced",
    "balanced-battery",
    "desktop",
    "hpc-compute",
    "intel-sst",
    "mssql",
    "network-throughput",
    "oracle",
    "postgresql",
    "powersave",
    "server-powersave",
    "spindown-disk",
    "throughput-performance",
    "virtual-guest",
    "virtual-host",
];

const TUNED: Setting =
    Setting { layer: Layer::Service, impact: Impact::Low, needs: Needs::ANY, ..Setting::BLANK };

const VARIABLE: Setting = Setting {
    reason: "TuneD's cpu-partitioning takes its CPU lists from this file. lowlat chooses CPUs from the \
             host's topology and writes them directly, so the file matters only while TuneD manages the \
             host.",
    effective: "The CPUs are in /sys/devices/system/cpu/nohz_full after the reboot.",
    reads: &[VARIABLES],
    hazard: "The guide computes the list in a shell script, by arithmetic on CPU numbers. That is wrong for \
             interleaved numbering, offline CPUs and hybrid processors, and the masks are wrong from 64 CPUs \
             on.",
    sources: &[SECTION_1_4, HAZARDS],
    judge: variable,
    change: change::tuned::tuned_variable,
    ..TUNED
};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "service.tuned.profile",
        change: change::tuned::tuned_profile,
        name: "tuned-adm active",
        reason: "TuneD applies its profile when it starts and when a device appears. A profile for \
                 throughput or power saving reverts what was set for latency.",
        cost: "The profile's own settings for other workloads are lost.",
        impact: Impact::Medium,
        effective: "`tuned-adm active` names the profile.",
        reads: &["/usr/lib/tuned/profiles/balanced/tuned.conf"],
        trading: Want::State("no profile made for throughput or power saving"),
        guide: Want::Value(GUIDE_PROFILE),
        hazard: "The guide stops TuneD afterwards (step 9), which rolls the profile back: see service.tuned.",
        sources: &[SECTION_1_2, "guide 57037 section 4.3.3.1.2 step 1", "TuneD 2.28 profiles"],
        judge: profile,
        ..TUNED
    },
    Setting {
        id: "service.tuned.rollback",
        change: change::tuned::tuned_rollback,
        name: "rollback",
        reason: "With rollback=auto TuneD reverts everything when it stops, including the boot parameters. \
                 With not_on_exit a stopped, crashed or updated daemon leaves the host unchanged.",
        cost: "Switching TuneD off no longer restores the old settings, but a change of profile does.",
        risk: Risk::Availability,
        impact: Impact::High,
        effective: "After `systemctl stop tuned` the settings are unchanged.",
        both: Want::Derived(rollback),
        hazard: "The guide stops TuneD with its default. IRQ, scheduler and workqueue settings are reverted, \
                 and the next boot can come up without nohz_full= and rcu_nocbs=.",
        reads: &[VERSION],
        sources: &[HAZARDS, "TuneD tuned-main.conf rollback", "TuneD issue 416 and pull request 533"],
        judge: judge_rollback,
        ..TUNED
    },
    Setting {
        id: "service.tuned.include",
        change: change::tuned::tuned_include,
        name: "include=cpu-partitioning",
        reason: "The guide's profile builds on TuneD's cpu-partitioning, which adds the boot parameters for isolated \
                 CPUs and moves threads and workqueues away.",
        effective: "The parameters of cpu-partitioning are in /proc/cmdline.",
        reads: PROFILES,
        guide: Want::Value("cpu-partitioning"),
        hazard: "The bare key cmdline= in the child replaces the parent's: skew_tick=1 of network-latency is \
                 silently lost.",
        sources: &[SECTION_1_2],
        judge: include,
        ..TUNED
    },
    Setting {
        id: "service.tuned.bootloader",
        change: change::tuned::tuned_bootloader,
        name: "[bootloader] cmdline",
        reason: "The parameters that TuneD passed to the boot loader must be those that the kernel was \
                 started with. They differ after an EFI path that TuneD does not know, with another boot \
                 entry or a full grubenv.",
        impact: Impact::Medium,
        needs_reboot: true,
        effective: "Every word of TUNED_BOOT_CMDLINE in /etc/tuned/bootcmdline is in /proc/cmdline.",
        reads: &[change::tuned::BOOTCMDLINE],
        both: Want::State("every parameter that TuneD requests is in force"),
        hazard: "TuneD's GRUB support has failed without an error on EFI hosts, on other boot entries, and \
                 with a full grubenv.",
        sources: &[SECTION_1_2, HAZARDS, "TuneD issues 81, 174, 528, 704 and 706"],
        judge: bootloader,
        ..TUNED
    },
    Setting {
        id: "service.tuned.housekeeping_cpus",
        name: "housekeeping_cpus",
        guide: Want::Derived(judge::housekeeping_list),
        ..VARIABLE
    },
    Setting {
        id: "service.tuned.isolated_cores",
        name: "isolated_cores",
        guide: Want::Derived(judge::isolated_list),
        ..VARIABLE
    },
    Setting {
        id: "service.tuned.no_balance_cores",
        name: "no_balance_cores",
        guide: Want::Derived(judge::isolated_list),
        ..VARIABLE
    },
];

fn profile(context: &Context<'_>, setting: &Setting) -> Judgement {
    let path = "/etc/tuned/active_profile";
    let reading = &context.host.services.tuned.profile;
    let wants_guide = matches!(setting.want(context.profile), Want::Value(_));
    let judgement = match reading {
        Reading::Known(name) if wants_guide && name == GUIDE_PROFILE => Judgement::good(name.as_str()),
        Reading::Known(name) if wants_guide => Judgement::wrong(name_or_none(name), ""),
        Reading::Absent if context.host.services.units.contains_key("tuned.service") => {
            Judgement::unknown("TuneD is installed, but its files in /etc/tuned were not read")
        }
        Reading::Absent if wants_guide => Judgement::wrong("TuneD is not installed", ""),
        Reading::Absent => Judgement::good("TuneD is not installed"),
        // The file may name several profiles; each is applied.
        Reading::Known(name) => match name.split_whitespace().find(|part| CONTRARY_PROFILES.contains(part)) {
            Some(contrary) => Judgement::wrong(name.as_str(), format!("{contrary} is not made for latency")),
            None => Judgement::good(name_or_none(name)),
        },
        other => return judge::missing(other, path),
    };
    judgement.at(path)
}

fn name_or_none(name: &str) -> &str {
    if name.is_empty() { "no profile" } else { name }
}

/// Wanted only if TuneD has something to roll back.
fn rollback(context: &Context<'_>) -> Option<String> {
    let has_none = match &context.host.services.tuned.profile {
        Reading::Known(profile) => profile.is_empty(),
        // A profile that was not read may exist.
        other => other.is_absent(),
    };
    (!has_none).then(|| "not_on_exit".to_owned())
}

fn judge_rollback(context: &Context<'_>, _: &Setting) -> Judgement {
    if let Some(((major, minor), path)) = version(context).filter(|(version, _)| *version < ROLLBACK_SINCE) {
        let (since_major, since_minor) = ROLLBACK_SINCE;
        return Judgement::not_applicable(format!(
            "TuneD {major}.{minor} does not know it (new in {since_major}.{since_minor}) and rolls back \
             whenever it stops"
        ))
        .at(path);
    }
    let path = "/etc/tuned/tuned-main.conf";
    let profile = &context.host.services.tuned.profile;
    if !profile.is_known() {
        return judge::missing(profile, "/etc/tuned/active_profile");
    }
    let judgement = match &context.host.services.tuned.rollback {
        Reading::Known(value) if value == "not_on_exit" => Judgement::good(value.as_str()),
        Reading::Known(value) => Judgement::wrong(value.as_str(), ""),
        Reading::Absent => Judgement::wrong("not set, which means auto", ""),
        other => return judge::missing(other, path),
    };
    judgement.at(path)
}

/// The version of the installed TuneD, and the file that contains it.
fn version<'a>(context: &Context<'a>) -> Option<((u32, u32), &'a str)> {
    context.host.files_matching(VERSION).find_map(|(path, reading)| {
        let text = reading.known()?;
        let number = |key| value_of(text, key)?.parse().ok();
        Some(((number("TUNED_VERSION_MAJOR")?, number("TUNED_VERSION_MINOR")?), path))
    })
}

/// The value of `key=` in one of TuneD's files, outside comments.
fn value_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.trim().split_once('=')?;
        (name.trim() == key).then(|| value.trim())
    })
}

fn include(context: &Context<'_>, _: &Setting) -> Judgement {
    let of_guide = PROFILES
        .iter()
        .flat_map(|glob| context.host.files_matching(glob))
        .find(|(path, _)| path.split('/').nth_back(1) == Some(GUIDE_PROFILE));
    let Some((path, reading)) = of_guide else {
        return Judgement::wrong(format!("profile {GUIDE_PROFILE} does not exist"), "");
    };
    let judgement = match reading {
        Reading::Known(text) => match value_of(text, "include") {
            Some("cpu-partitioning") => Judgement::good("include=cpu-partitioning"),
            Some(other) => Judgement::wrong(format!("include={other}"), ""),
            None => Judgement::wrong("no include=", ""),
        },
        other => return judge::missing(other, path),
    };
    judgement.at(path)
}

/// Compares a list of the variables file with the allocation; TuneD evaluates expressions itself.
fn variable(context: &Context<'_>, setting: &Setting) -> Judgement {
    let reading = context.host.file(VARIABLES);
    let Reading::Known(text) = &reading else {
        return match reading {
            Reading::Absent => Judgement::wrong(format!("{VARIABLES} does not exist"), ""),
            other => judge::missing(&other, VARIABLES),
        };
    };
    let wanted = setting.want(context.profile).text(context).unwrap_or_default();
    let judgement = match value_of(text, setting.name) {
        None => Judgement::wrong("not set", ""),
        Some(value) if value.contains("${") => Judgement {
            observed: value.to_owned(),
            ..Judgement::unknown("an expression that TuneD evaluates")
        },
        Some(value) => match CpuSet::parse_list(value) {
            Ok(cpus) if same_meaning(&cpus.to_list(), &wanted) => Judgement::good(value),
            Ok(_) => Judgement::wrong(value, ""),
            Err(error) => Judgement::wrong(value, error.to_string()),
        },
    };
    judgement.at(VARIABLES)
}

/// Returns the boot parameters that TuneD requests, or a judgement with the reason why they are unknown.
pub(super) fn boot_command_line(context: &Context<'_>) -> Result<CommandLine, Judgement> {
    match context.host.file(change::tuned::BOOTCMDLINE) {
        Reading::Known(text) => {
            let value = value_of(&text, "TUNED_BOOT_CMDLINE").unwrap_or_default();
            Ok(CommandLine::parse(value.trim_matches('"')))
        }
        Reading::Absent => {
            Err(Judgement::not_applicable("TuneD adds no boot parameters here")
                .at(change::tuned::BOOTCMDLINE))
        }
        other => Err(judge::missing(&other, change::tuned::BOOTCMDLINE)),
    }
}

/// True if a parameter is on a command line with an equivalent value.
pub(super) fn is_on_line((name, value): &(String, Option<String>), line: &CommandLine) -> bool {
    let wanted = value.as_deref().unwrap_or_default();
    line.all(name).any(|found| same_meaning(found.unwrap_or_default(), wanted))
}

/// The usual spelling of a parameter.
pub(super) fn spell((name, value): &(String, Option<String>)) -> String {
    value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}={value}"))
}

fn bootloader(context: &Context<'_>, _: &Setting) -> Judgement {
    let asked = match boot_command_line(context) {
        Ok(asked) => asked,
        Err(judgement) => return judgement,
    };
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let lost: Vec<String> =
        asked.tokens().iter().filter(|token| !is_on_line(token, line)).map(spell).collect();
    let all = asked.tokens().len();
    let judgement = match (all, lost.len()) {
        (0, _) => Judgement::not_applicable("TuneD requests no boot parameters"),
        (_, 0) => Judgement::good(format!("all {all} parameters are in force")),
        (_, missing) => Judgement::new(
            Verdict::Ineffective,
            format!("{missing} of {all} are not in force: {}", judge::some_of(&lost, 8)),
            "the host was not rebooted since, or the boot loader did not receive them",
        ),
    };
    judgement.at(change::tuned::BOOTCMDLINE)
}
