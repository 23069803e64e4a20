//! The mesh's frequency, the platform's profile, sampling of memory, and BPF schedulers.

use super::SYSFS;
use lowlat_host::Reading;
use lowlat_settings::{
    Context, Judgement, Needs, Risk, Setting, Want,
    change::{Proposal, Target, WhyLeftOut, files},
    judge::{
        self,
        each::{One, judge_each},
    },
};

const UNCORE: &str = "/sys/devices/system/cpu/intel_uncore_frequency";
const MINIMA: &str = "/sys/devices/system/cpu/intel_uncore_frequency/*/min_freq_khz";
const MAXIMA: &str = "/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz";
const FLOORS: &str = "/sys/devices/system/cpu/intel_uncore_frequency/*/elc_floor_freq_khz";
const PLATFORM_PROFILE: &str = "/sys/firmware/acpi/platform_profile";
const PLATFORM_CHOICES: &str = "/sys/firmware/acpi/platform_profile_choices";
const DAMON: &str = "/sys/module/damon_stat/parameters/enabled";
const SCHED_EXT: &str = "/sys/kernel/sched_ext/state";
/// Services that load a BPF scheduler.
const SCX_UNITS: [&str; 2] = ["scx.service", "scx_loader.service"];

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "sysfs.uncore_frequency",
        change: uncore_change,
        name: "intel_uncore_frequency min_freq_khz, elc_floor_freq_khz",
        reason: "The mesh between cores, caches and memory lowers its clock while most cores are idle. A few busy \
                 trading threads do not raise it, and each of their cache misses takes longer.",
        cost: "More power, and less of it for the cores' boost.",
        risk: Risk::Power,
        needs: Needs { since: Needs::since(5, 6).since, ..Needs::X86 },
        effective: "current_freq_khz stays at the maximum while the host is idle.",
        reads: &[MINIMA, MAXIMA, FLOORS],
        trading: Want::State("minimum and floor at the maximum"),
        sources: &[
            "kernel Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
            "TuneD 2.28 plugin_uncore",
            "kernel commit bb516dc79c4a: efficiency latency control (6.12)",
        ],
        judge: uncore,
        ..SYSFS
    },
    Setting {
        id: "sysfs.platform_profile",
        change: platform_change,
        name: "platform_profile",
        reason: "The firmware's own trade of power against speed, beside the kernel's governor.",
        cost: "More power, heat and noise.",
        risk: Risk::Power,
        needs: Needs::since(5, 12),
        effective: "/sys/firmware/acpi/platform_profile contains performance.",
        reads: &[PLATFORM_PROFILE, PLATFORM_CHOICES],
        trading: Want::Value("performance"),
        sources: &[
            "kernel Documentation/ABI/testing/sysfs-platform_profile",
            "TuneD 2.28 profile latency-performance",
        ],
        judge: platform_profile,
        ..SYSFS
    },
    Setting {
        id: "sysfs.damon_stat",
        name: "damon_stat enabled",
        reason: "A kernel thread, kdamond, samples which memory is in use, and clears the accessed bits of page tables \
                 for that. The next access to each sampled page walks the page table again. Debian's 7.3 switches it \
                 on.",
        cost: "No estimate of idle memory in /sys/module/damon_stat/parameters.",
        needs: Needs::since(6, 17).with_config(&["DAMON_STAT"]),
        effective: "No thread named kdamond.N runs.",
        reads: &[DAMON],
        trading: Want::Value("N"),
        sources: &["kernel Documentation/admin-guide/mm/damon/stat.rst", "kernel commit 369c415e6073 (6.17)"],
        judge: judge::files,
        ..SYSFS
    },
    Setting {
        id: "sysfs.sched_ext",
        change: sched_ext_change,
        name: "sched_ext state",
        reason: "A BPF scheduler decides where threads of the default policy run, instead of the kernel. It may move \
                 threads that the kernel would leave, and needs the tick on CPUs without one.",
        cost: "The kernel's own scheduler places all threads again.",
        needs: Needs::since(6, 12).with_config(&["SCHED_CLASS_EXT"]),
        effective: "/sys/kernel/sched_ext/state contains disabled.",
        trading: Want::State("no BPF scheduler is loaded"),
        sources: &["kernel Documentation/scheduler/sched-ext.rst"],
        judge: sched_ext,
        ..SYSFS
    },
];

/// A number in a file of a die's folder.
fn number(context: &Context<'_>, folder: &str, file: &str) -> Reading<u64> {
    let path = format!("{folder}/{file}");
    context.host.file(&path).parse(&path, "a frequency in kHz", |text| text.trim().parse().ok())
}

/// The folder of each die or cluster of the mesh.
fn dies<'a>(context: &'a Context<'_>) -> impl Iterator<Item = &'a str> {
    let minima = context.host.files_matching(MINIMA);
    minima.filter_map(|(path, _)| path.strip_suffix("/min_freq_khz"))
}

/// The files of a die that are below its maximum: name, value, maximum.
fn below(context: &Context<'_>, folder: &str) -> Result<Vec<(&'static str, u64, u64)>, String> {
    let value = |file| match number(context, folder, file) {
        Reading::Known(value) => Ok(Some(value)),
        Reading::Absent => Ok(None),
        other => Err(other.missing_in_words().unwrap_or_default()),
    };
    let Some(max) = value("max_freq_khz")? else { return Err("max_freq_khz does not exist".to_owned()) };
    let mut found = Vec::new();
    for file in ["min_freq_khz", "elc_floor_freq_khz"] {
        found.extend(value(file)?.filter(|now| *now < max).map(|now| (file, now, max)));
    }
    Ok(found)
}

fn uncore(context: &Context<'_>, _: &Setting) -> Judgement {
    let all = dies(context).map(|folder| {
        let name = folder.rsplit('/').next().unwrap_or(folder).to_owned();
        let one = match below(context, folder) {
            Ok(found) if found.is_empty() => One::Good("at the maximum".to_owned()),
            Ok(found) => {
                let each: Vec<String> =
                    found.iter().map(|(file, now, max)| format!("{file} {now} of {max}")).collect();
                One::Wrong(each.join(", "), String::new())
            }
            Err(why) => One::Unknown(why),
        };
        (name, one)
    });
    judge_each(all, "the mesh's frequency is not the kernel's to set on this host").at(UNCORE)
}

fn uncore_change(context: &Context<'_>, _: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for folder in dies(context) {
        for (file, now, max) in below(context, folder).unwrap_or_default() {
            let target = Target::File { path: format!("{folder}/{file}") };
            proposal = proposal.step(target, Reading::Known(now.to_string()), max.to_string());
        }
    }
    proposal
}

/// True if the firmware offers the wanted profile, or its choices are unknown.
fn offers_performance(context: &Context<'_>) -> bool {
    let choices = context.host.file(PLATFORM_CHOICES);
    choices.known().is_none_or(|choices| choices.split_whitespace().any(|choice| choice == "performance"))
}

fn platform_profile(context: &Context<'_>, setting: &Setting) -> Judgement {
    let now = context.host.file(PLATFORM_PROFILE);
    match &now {
        Reading::Known(text) if judge::satisfies(context, &setting.trading, text) => {
            Judgement::good(text.as_str())
        }
        Reading::Known(text) if !offers_performance(context) => {
            judge::good_because(text.as_str(), "the firmware offers no profile \"performance\"")
        }
        Reading::Known(text) => Judgement::wrong(text.as_str(), ""),
        Reading::Absent => Judgement::not_applicable("the firmware offers no profiles"),
        other => return judge::missing(other, PLATFORM_PROFILE),
    }
    .at(PLATFORM_PROFILE)
}

/// The one file that can be written.
fn platform_change(context: &Context<'_>, setting: &Setting) -> Proposal {
    let only = Setting { reads: &[PLATFORM_PROFILE], ..*setting };
    files::all(context, &only)
}

fn sched_ext(context: &Context<'_>, _: &Setting) -> Judgement {
    let facts = &context.host.scheduler;
    let judgement = match (&facts.ext_state, facts.loaded_ext()) {
        (_, Some(name)) => Judgement::wrong(format!("{name} is loaded"), ""),
        (Reading::Known(state), None) => Judgement::good(state.as_str()),
        (Reading::Absent, None) => Judgement::not_applicable("this kernel has no sched_ext"),
        (other, None) => return judge::missing(other, SCHED_EXT),
    };
    judgement.at(SCHED_EXT)
}

/// Stops the service that loaded the scheduler, if one did.
fn sched_ext_change(context: &Context<'_>, setting: &Setting) -> Proposal {
    let units = &context.host.services.units;
    let is_running = |name: &&&str| units.get(**name).is_some_and(|unit| unit.active.text() == "active");
    let Some(name) = SCX_UNITS.iter().find(is_running) else {
        return Proposal::not(WhyLeftOut::YourChoice, "end the program that loaded the scheduler");
    };
    let only = Setting { name, ..*setting };
    lowlat_settings::change::service::stop(context, &only)
}
