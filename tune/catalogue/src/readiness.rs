//! The current state of the host, which the guide checks before measuring.

use crate::HAZARDS;
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Setting, Verdict, Want,
    change::{self, WhyLeftOut},
    judge,
};

const READINESS: Setting = Setting { layer: Layer::Readiness, impact: Impact::Low, ..Setting::BLANK };

const SECTION_1_8: &str = "guide 57037 section 5.2.1";

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "readiness.load_average",
        name: "/proc/loadavg",
        reason: "Work left over from boot or from configuration makes the first measurement worse than the \
                 host is. Wait until the load is gone.",
        effective: "All three load averages are at most 0.1.",
        trading: Want::State("at most 0.1 over 1, 5 and 15 minutes, before trading starts"),
        guide: Want::State("0.00, 0.00, 0.00"),
        hazard: "The guide checks it by eye; threads that spin by design count as load.",
        sources: &[SECTION_1_8],
        judge: load_average,
        ..READINESS
    },
    Setting {
        id: "readiness.affinity",
        change: change::processes::off_isolated,
        name: "taskset -cp $$",
        reason: "Shells, and processes started from them, must not run on isolated CPUs unless they request it. \
                 This row shows whether the isolation reaches ordinary processes.",
        impact: Impact::Medium,
        effective: "Cpus_allowed_list in /proc/self/status names housekeeping CPUs only, and so do systemd.cpu_affinity=, \
                    CPUAffinity= in system.conf, and AllowedCPUs= of system.slice, user.slice and init.scope.",
        both: Want::Derived(judge::housekeeping_list),
        hazard: "The guide's measuring script relies on this: its own threads avoid the measured CPUs only \
                 because the shell does.",
        sources: &[SECTION_1_8, HAZARDS],
        judge: affinity,
        ..READINESS
    },
    Setting {
        id: "readiness.tuned",
        change: change::tuned::never_stop_tuned,
        name: "tuned-adm active",
        reason: "After the guide's script TuneD must be stopped with its profile still preset. The resulting \
                 message looks like an error but is what the guide intends.",
        effective: "`tuned-adm active` says that the daemon is not running and names the preset profile.",
        guide: Want::State("TuneD stopped, HPELowLatency preset"),
        hazard: "A stopped TuneD has rolled its profile back; see service.tuned and service.tuned.rollback.",
        sources: &[SECTION_1_8, HAZARDS],
        judge: tuned,
        ..READINESS
    },
    Setting {
        id: "readiness.cmdline",
        not_planned: "it summarizes the boot settings, which are planned one by one",
        why_not: WhyLeftOut::ByAnother,
        name: "/proc/cmdline",
        reason: "Every parameter of the profile must be on the kernel's actual command line. A boot loader \
                 that lost one reports nothing.",
        impact: Impact::Medium,
        effective: "Every boot setting is good or does not apply.",
        both: Want::State("no boot setting is wrong"),
        hazard: "The guide checks it by eye.",
        sources: &[SECTION_1_8],
        judge: cmdline,
        ..READINESS
    },
];

fn load_average(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::known(&context.host.kernel.load_average, "/proc/loadavg", |loads| {
        let observed = loads.map(|load| format!("{load:.2}")).join(", ");
        if loads.iter().all(|load| (0.0..=judge::LOAD_READY_MAX).contains(load)) {
            return Judgement::good(observed);
        }
        let because =
            "the host is busy: wait, or find the cause with top; spinning trading threads count too";
        Judgement::wrong(observed, because)
    })
}

fn affinity(context: &Context<'_>, _: &Setting) -> Judgement {
    let given = change::processes::gives_isolated(context);
    if let Some(first) = given.first() {
        let place = |found: &change::processes::GivesCpus| {
            let line = found.line.map_or_else(String::new, |line| format!(":{line}"));
            let unit = if found.unit.is_empty() { String::new() } else { format!(" of {}", found.unit) };
            format!("{}{unit} in {}{line}", found.says, found.path)
        };
        let reached = given.iter().fold(CpuSet::new(), |all, found| all.union(&found.cpus));
        let reached = reached.intersection(&context.allocation.isolated);
        let observed = given.iter().map(place).collect::<Vec<_>>().join("; ");
        let because = format!("systemd starts ordinary processes on isolated {reached:#}");
        return Judgement::wrong(observed, because).at(first.path.as_str());
    }
    let path = "/proc/self/status";
    let reading = &context.host.tasks.allowed_cpus;
    let Reading::Known(cpus) = reading else { return judge::missing(reading, path) };
    let reached = cpus.intersection(&context.allocation.isolated);
    let judgement = if reached.is_empty() {
        Judgement::good(cpus.to_list())
    } else {
        Judgement::wrong(cpus.to_list(), format!("ordinary processes may run on isolated {reached:#}"))
    };
    judgement.at(path)
}

fn tuned(context: &Context<'_>, _: &Setting) -> Judgement {
    let services = &context.host.services;
    let active = services.units.get("tuned.service").map(|unit| &unit.active);
    let profile = match &services.tuned.profile {
        Reading::Known(profile) => profile,
        Reading::Absent => return Judgement::wrong("no preset profile", "").at("/etc/tuned/active_profile"),
        other => return judge::missing(other, "/etc/tuned/active_profile"),
    };
    let judgement = match active {
        Some(Reading::Known(state)) if state == "active" => {
            Judgement::wrong(format!("running, profile {profile}"), "")
        }
        Some(Reading::Known(_)) if profile == "HPELowLatency" => {
            Judgement::good(format!("not running, preset profile {profile}"))
        }
        Some(Reading::Known(_)) => Judgement::wrong(format!("not running, preset profile {profile}"), ""),
        Some(other @ (Reading::Denied | Reading::Unparsable(_))) => judge::missing(other, "tuned.service"),
        Some(Reading::Absent) | None => Judgement::unknown("the state of tuned.service was not read"),
    };
    judgement.at("/etc/tuned/active_profile")
}

/// Good if no boot row has a fault.
fn cmdline(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(_) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let boot = context.catalogue.settings().filter(|setting| setting.layer == Layer::Boot);
    let findings: Vec<_> = boot.map(|setting| lowlat_settings::judge_one(context, setting)).collect();
    let faults: Vec<String> = findings
        .iter()
        .filter(|finding| finding.verdict.is_fault())
        .map(|finding| finding.id.clone())
        .collect();
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (good, unknown) = (count(Verdict::Good), count(Verdict::Unknown));
    let because = if unknown == 0 { String::new() } else { format!("{unknown} could not be checked") };
    let judgement = if faults.is_empty() && unknown > 0 {
        Judgement { observed: format!("{good} good"), ..Judgement::unknown(because) }
    } else if faults.is_empty() {
        let are = if good == 1 { "setting is" } else { "settings are" };
        Judgement::good(format!("{good} boot {are} good"))
    } else {
        let named = judge::some_of(&faults, 8);
        let are = if faults.len() == 1 { "setting is" } else { "settings are" };
        Judgement::wrong(format!("{} boot {are} wrong: {named}", faults.len()), because)
    };
    judgement.at("/proc/cmdline")
}
