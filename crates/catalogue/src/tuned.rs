//! TuneD: its profile, what the profile asks of the boot loader, and what happens when it stops.

use lowlat_host::{CpuSet, Reading, cmdline::CommandLine};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Verdict, Want, change, compare::same_meaning,
    judge,
};

const VARIABLES: &str = "/etc/tuned/cpu-partitioning-variables.conf";
const PROFILES: &[&str] = &["/etc/tuned/*/tuned.conf", "/etc/tuned/profiles/*/tuned.conf"];
/// Where TuneD's program says which version it is.
const VERSION: &str = "/usr/lib/python3*/*-packages/tuned/version.py";
/// The first TuneD that knows `rollback`; an older one says so in its log and goes on.
const ROLLBACK_SINCE: (u32, u32) = (2, 21);
const GUIDE_PROFILE: &str = "HPELowLatency";
const SECTION_1_2: &str = "guide 57037 section 4.3.2.1.1";
const SECTION_1_4: &str = "guide 57037 section 4.3.2.1.3";
const HAZARDS: &str = "docs/guide-57037.md: hazards of guide 57037 on today's hosts";

/// Profiles that TuneD ships for other ends than latency. They set governors and sysctls of their own, and set them
/// again whenever the daemon starts.
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
    reason: "TuneD's cpu-partitioning takes its CPU lists from this file. lowlat chooses CPUs from the host's topology \
             and writes them where they count, so the file matters only while TuneD rules the host.",
    effective: "The CPUs stand in /sys/devices/system/cpu/nohz_full after the reboot.",
    reads: &[VARIABLES],
    hazard: "The guide computes the list in shell, by arithmetic on CPU numbers: wrong for interleaved numbering, \
             offline CPUs and hybrid processors, and the masks are wrong from 64 CPUs on.",
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
        reason: "TuneD applies its profile when it starts and when a device appears. A profile for throughput or power \
                 saving undoes what was set for latency; one for latency, or none, does not.",
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
        reason: "With rollback=auto TuneD undoes everything when it stops, the boot parameters too. With not_on_exit a \
                 stopped, crashed or updated daemon leaves the host as it is.",
        cost: "Switching TuneD off no longer restores the old settings; a change of profile does.",
        risk: Risk::Availability,
        impact: Impact::High,
        effective: "After `systemctl stop tuned` the settings are still there.",
        trading: Want::Derived(rollback),
        guide: Want::Derived(rollback),
        hazard: "The guide stops TuneD with its default: IRQ, scheduler and workqueue settings are undone, and the next \
                 boot can come up without nohz_full= and rcu_nocbs=.",
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
        effective: "The parameters of cpu-partitioning stand in /proc/cmdline.",
        reads: PROFILES,
        guide: Want::Value("cpu-partitioning"),
        hazard: "The bare key cmdline= in the child replaces the parent's: skew_tick=1 of network-latency is lost \
                 without a word.",
        sources: &[SECTION_1_2],
        judge: include,
        ..TUNED
    },
    Setting {
        id: "service.tuned.bootloader",
        change: change::tuned::tuned_bootloader,
        name: "[bootloader] cmdline",
        reason: "What TuneD asked the boot loader for must be what the kernel was started with. An EFI path that TuneD \
                 does not know, another boot entry or a full grubenv make the difference.",
        impact: Impact::Medium,
        needs_reboot: true,
        effective: "Every word of TUNED_BOOT_CMDLINE in /etc/tuned/bootcmdline stands in /proc/cmdline.",
        reads: &[change::tuned::BOOTCMDLINE],
        trading: Want::State("every parameter that TuneD asks for is in force"),
        guide: Want::State("every parameter that TuneD asks for is in force"),
        hazard: "TuneD's grub support has failed without an error on EFI hosts, on other boot entries and when grubenv \
                 was full.",
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
        Reading::Absent if wants_guide => Judgement::wrong("TuneD is not installed", ""),
        Reading::Absent => Judgement::good("TuneD is not installed"),
        // Several profiles may be named; each is applied.
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

/// Wanted only where TuneD has something to roll back.
fn rollback(context: &Context<'_>) -> Option<String> {
    let has_profile = context.host.services.tuned.profile.known().is_some_and(|profile| !profile.is_empty());
    has_profile.then(|| "not_on_exit".to_owned())
}

fn judge_rollback(context: &Context<'_>, _: &Setting) -> Judgement {
    if let Some(((major, minor), path)) = version(context).filter(|(version, _)| *version < ROLLBACK_SINCE) {
        let (since_major, since_minor) = ROLLBACK_SINCE;
        return Judgement::not_applicable(format!(
            "TuneD {major}.{minor} does not know it (new in {since_major}.{since_minor}) and rolls back whenever it stops"
        ))
        .at(path);
    }
    let path = "/etc/tuned/tuned-main.conf";
    let judgement = match &context.host.services.tuned.rollback {
        Reading::Known(value) if value == "not_on_exit" => Judgement::good(value.as_str()),
        Reading::Known(value) => Judgement::wrong(value.as_str(), ""),
        Reading::Absent => Judgement::wrong("not set, which means auto", ""),
        other => return judge::missing(other, path),
    };
    judgement.at(path)
}

/// The version of the TuneD that is installed, and the file that says so.
fn version<'a>(context: &Context<'a>) -> Option<((u32, u32), &'a str)> {
    context.host.files_matching(VERSION).find_map(|(path, reading)| {
        let text = reading.known()?;
        let number = |key| value_of(text, key)?.parse().ok();
        Some(((number("TUNED_VERSION_MAJOR")?, number("TUNED_VERSION_MINOR")?), path))
    })
}

/// The value of `key=` in the text of one of TuneD's files, outside comments.
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
        return Judgement::wrong(format!("there is no profile {GUIDE_PROFILE}"), "");
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

/// A list of the variables file against the allocation; an expression is TuneD's to work out.
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
            ..Judgement::unknown("an expression that TuneD works out")
        },
        Some(value) => match CpuSet::parse_list(value) {
            Ok(cpus) if same_meaning(&cpus.to_list(), &wanted) => Judgement::good(value),
            Ok(_) => Judgement::wrong(value, ""),
            Err(error) => Judgement::wrong(value, error.to_string()),
        },
    };
    judgement.at(VARIABLES)
}

/// What TuneD asks the boot loader for, or why that is not known.
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

/// Whether a parameter stands on a command line with a value of the same meaning.
pub(super) fn stands_on((name, value): &(String, Option<String>), line: &CommandLine) -> bool {
    let wanted = value.as_deref().unwrap_or_default();
    line.all(name).any(|found| same_meaning(found.unwrap_or_default(), wanted))
}

/// A parameter as people write it.
pub(super) fn spell((name, value): &(String, Option<String>)) -> String {
    value.as_ref().map_or_else(|| name.clone(), |value| format!("{name}={value}"))
}

fn bootloader(context: &Context<'_>, _: &Setting) -> Judgement {
    let asked = match boot_command_line(context) {
        Ok(asked) => asked,
        Err(judgement) => return judgement,
    };
    let line = match judge::command_line(context.host) {
        Ok(line) => line,
        Err(judgement) => return judgement,
    };
    let lost: Vec<String> =
        asked.tokens().iter().filter(|token| !stands_on(token, line)).map(spell).collect();
    let all = asked.tokens().len();
    let judgement = match (all, lost.len()) {
        (0, _) => Judgement::not_applicable("TuneD asks for no boot parameters"),
        (_, 0) => Judgement::good(format!("all {all} parameters are in force")),
        (_, missing) => Judgement::new(
            Verdict::Ineffective,
            format!("{missing} of {all} are not in force: {}", judge::some_of(&lost, 8)),
            "the host was not rebooted since, or the boot loader did not get them",
        ),
    };
    judgement.at(change::tuned::BOOTCMDLINE)
}
