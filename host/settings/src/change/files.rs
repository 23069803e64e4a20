//! Small files of /sys, /proc and debugfs: frequency, idle states, schedulers of disks, clocks.

use super::{Proposal, Target, WhyLeftOut};
use crate::{Context, Setting, Want, judge::chosen_word, judge::is_shallow, judge::satisfies};
use lowlat_host::{Reading, snapshot::CpuFreq};

/// The value to write: the wanted one, or the first of several; none for a described state.
pub fn value(context: &Context<'_>, setting: &Setting) -> Option<String> {
    match setting.want(context.profile) {
        Want::Value(value) => Some(value.to_owned()),
        Want::OneOf(values) => values.first().map(|value| (*value).to_owned()),
        Want::Derived(derive) => derive(context),
        Want::Nothing | Want::State(_) => None,
    }
}

fn in_words() -> Proposal {
    Proposal::not(WhyLeftOut::YourChoice, "several values are possible, and lowlat does not choose one")
}

fn file(path: impl Into<String>) -> Target {
    Target::File { path: path.into() }
}

/// Every file of the row with a value other than the wanted one.
pub fn all(context: &Context<'_>, setting: &Setting) -> Proposal {
    let want = setting.want(context.profile);
    let Some(value) = value(context, setting) else { return in_words() };
    let mut proposal = Proposal::default();
    for (path, reading) in setting.reads.iter().flat_map(|glob| context.host.files_matching(glob)) {
        if let Reading::Known(text) = reading
            && !satisfies(context, &want, chosen_word(text))
        {
            proposal = proposal.step(file(path), Reading::Known(chosen_word(text).to_owned()), &value);
        }
    }
    proposal
}

/// A step for a file of each policy, by its lowest CPU. `values` gives the present value and the wanted one; none if the
/// policy is right as it is.
fn of_policies<'a>(
    policies: impl Iterator<Item = &'a CpuFreq>,
    name: &str,
    values: impl Fn(&CpuFreq) -> Option<(String, String)>,
) -> Proposal {
    let mut proposal = Proposal::default();
    for policy in policies {
        if let (Some(cpu), Some((before, after))) = (policy.cpus.lowest(), values(policy)) {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
            proposal = proposal.step(file(path), Reading::Known(before), after);
        }
    }
    proposal
}

fn isolated_policies<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a CpuFreq> {
    let isolated = &context.allocation.isolated;
    context.host.cpu.frequency.iter().filter(|policy| !policy.cpus.is_disjoint(isolated))
}

/// The governor of each policy.
pub fn governor(context: &Context<'_>, setting: &Setting) -> Proposal {
    let want = setting.want(context.profile);
    let Some(value) = value(context, setting) else { return in_words() };
    of_policies(context.host.cpu.frequency.iter(), "scaling_governor", |policy| {
        let governor = policy.governor.known().filter(|governor| !satisfies(context, &want, governor))?;
        Some((governor.clone(), value.clone()))
    })
}

/// The minimum frequency of policies of isolated CPUs whose governor may go below the maximum.
pub fn scaling_min(context: &Context<'_>, _: &Setting) -> Proposal {
    of_policies(isolated_policies(context), "scaling_min_freq", |policy| {
        let (min, max) = (policy.scaling_min_khz.known()?, policy.scaling_max_khz.known()?);
        let is_low = min < max && policy.governor.text() != "performance";
        is_low.then(|| (min.to_string(), max.to_string()))
    })
}

/// The energy hint of each policy of isolated CPUs.
pub fn preference(context: &Context<'_>, _: &Setting) -> Proposal {
    of_policies(isolated_policies(context), "energy_performance_preference", |policy| {
        let hint = policy.energy_performance_preference.known()?;
        (hint != "performance" && hint != "0").then(|| (hint.clone(), "performance".to_owned()))
    })
}

/// Idle states deeper than C1 on isolated CPUs.
pub fn idle_states(context: &Context<'_>, _: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for state in &context.host.cpu.idle_states {
        let cpus = state.cpus_enabled.intersection(&context.allocation.isolated);
        if !is_shallow(context.host, state) && !cpus.is_empty() {
            let target = Target::IdleState { name: state.name.clone(), cpus };
            proposal = proposal.step(target, Reading::Known("enabled".into()), "disabled");
        }
    }
    proposal
}

/// The I/O scheduler of each disk that the row judges.
pub fn disk_scheduler(context: &Context<'_>, setting: &Setting) -> Proposal {
    let takes_all = setting.want(context.profile).text(context).is_some_and(|want| want.contains("every"));
    let mut proposal = Proposal::default();
    for disk in &context.host.disks {
        let is_judged = takes_all || disk.is_rotational == Reading::Known(false);
        if let Reading::Known(scheduler) = &disk.scheduler
            && is_judged
            && scheduler != "none"
        {
            let path = format!("/sys/block/{}/queue/scheduler", disk.name);
            proposal = proposal.step(file(path), disk.scheduler.clone(), "none");
        }
    }
    proposal
}

/// The clock source, if the kernel offers the wanted one.
pub fn clock_source(context: &Context<'_>, setting: &Setting) -> Proposal {
    let cpu = &context.host.cpu;
    match value(context, setting) {
        Some(wanted) if cpu.clocksources_available.known().is_some_and(|all| all.contains(&wanted)) => {
            let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            Proposal::default().step(file(path), cpu.clocksource.clone(), wanted)
        }
        _ => Proposal::not(
            WhyLeftOut::Hardware,
            "the kernel does not offer the wanted clock source; search its log for \"unstable\"",
        ),
    }
}

/// The polling for corrected errors. It is not enabled automatically, because it was disabled on purpose.
pub fn check_interval(context: &Context<'_>, setting: &Setting) -> Proposal {
    if context.host.kernel.tokens().last("mce") == Some("ignore_ce") {
        return Proposal::not(
            WhyLeftOut::YourChoice,
            "mce=ignore_ce was set on purpose; remove it from the command line, or accept the risk in the role file",
        );
    }
    let Some(path) = setting.reads.first() else { return Proposal::default() };
    match context.host.file(path) {
        Reading::Known(text) if u64::from_str_radix(text.trim(), 16) == Ok(0) => Proposal::not(
            WhyLeftOut::YourChoice,
            "polling was disabled on purpose; write an interval, or accept the risk in the role file",
        ),
        before => Proposal::default().step(file(*path), before, "0"),
    }
}
