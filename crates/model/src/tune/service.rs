//! Services and TuneD.

use super::{Moment, Proposal, Target, WhyLeftOut};
use crate::Reading;
use crate::catalogue::{Context, Setting};

/// Every unit of the row that runs, sockets first: a listening socket would start its service again.
pub(crate) fn stop(context: &Context<'_>, setting: &Setting) -> Proposal {
    let units = &context.host.services.units;
    let mut running: Vec<(&str, String, String)> = Vec::new();
    for name in setting.name.split(',').map(str::trim) {
        let Some(unit) = units.get(name) else { continue };
        if matches!(unit.active.text(), "active" | "activating" | "reloading") {
            let enablement = unit.enablement.text();
            let boot = if enablement == "enabled" { "disabled" } else { enablement };
            let state = |active: &str, boot: &str| {
                if boot.is_empty() { active.to_owned() } else { format!("{active}, {boot}") }
            };
            running.push((name, state(unit.active.text(), enablement), state("inactive", boot)));
        }
    }
    running.sort_by_key(|(name, ..)| !name.ends_with(".socket"));
    running.into_iter().fold(Proposal::default(), |proposal, (name, before, after)| {
        proposal.step(Target::Service { unit: name.to_owned() }, Reading::Known(before), after)
    })
}

/// Never: TuneD undoes its profile when it stops.
pub(crate) fn never_stop_tuned(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::Harmful,
        "with rollback=auto a stopped TuneD undoes its whole profile, the boot parameters in grubenv too; lowlat leaves \
         it running and sets rollback=not_on_exit (service.tuned.rollback)",
    )
}

/// The key of TuneD's main file; the file takes no drop-in.
pub(crate) fn tuned_rollback(context: &Context<'_>, _: &Setting) -> Proposal {
    let target =
        Target::FileKey { path: "/etc/tuned/tuned-main.conf".to_owned(), key: "rollback".to_owned() };
    let before = context.host.services.tuned.rollback.clone();
    Proposal::default().step_at(Moment::Now, target, before, "not_on_exit")
}

/// A list in the variables of TuneD's cpu-partitioning, as ranges.
pub(crate) fn tuned_variable(context: &Context<'_>, setting: &Setting) -> Proposal {
    let path = "/etc/tuned/cpu-partitioning-variables.conf";
    let Some(value) = super::files::value(context, setting) else { return Proposal::default() };
    let before = context.host.file(path).and_then(|text| {
        let line = text.lines().find_map(|line| {
            let (name, value) = line.trim().split_once('=')?;
            (name.trim() == setting.name).then(|| value.trim().to_owned())
        });
        Reading::from_option(line)
    });
    let target = Target::FileKey { path: path.to_owned(), key: setting.name.to_owned() };
    Proposal::default().step_at(Moment::AtBoot, target, before, value)
}

/// Which profile TuneD runs is not changed under it: it rolls the old one back first.
pub(crate) fn tuned_profile(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "TuneD rolls its old profile back when the profile changes, so choose it yourself with `tuned-adm profile` \
         (cpu-partitioning, or none with `tuned-adm off`) before you apply the rest",
    )
}

/// The guide's profile is not written by a plan.
pub(crate) fn tuned_include(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the plan writes boot parameters and run-time values itself and needs no TuneD profile of that name",
    )
}

/// What TuneD asked of the boot loader and is not in force.
pub(crate) fn tuned_bootloader(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "reboot, and look again: what TuneD asked for and the line still lacks was lost by its boot loader support",
    )
}

/// The guide's service that runs its script.
pub(crate) fn one_time(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the run-time changes of the plan do what the script's steps do; the script races with TuneD and irqbalance, \
         goes on after errors, and has no way back",
    )
}

/// Flushing the packet filter has no way back.
pub(crate) fn netfilter(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::Harmful,
        "a flushed packet filter is gone, and with a policy of DROP it locks everybody out; leave the trading \
         interfaces out of its rules instead",
    )
}

/// Which service keeps the clock is the desk's choice.
pub(crate) fn clock_discipline(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "install and run one of chronyd, or ptp4l with phc2sys: which one depends on the network's time source",
    )
}
