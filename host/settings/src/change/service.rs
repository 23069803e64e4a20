//! Services.

use super::{Proposal, Target, WhyLeftOut};
use crate::{Context, Setting};
use lowlat_host::Reading;

/// Every unit of the row that runs, sockets first: a listening socket would start its service again.
pub fn stop(context: &Context<'_>, setting: &Setting) -> Proposal {
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

/// The guide's service that runs its script.
pub fn one_time(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the plan's run-time changes replace the script, which races with TuneD and irqbalance, continues after \
         errors, and cannot be rolled back",
    )
}

/// The user chooses the service that keeps the clock.
pub fn clock_discipline(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "install and run chronyd, or ptp4l with phc2sys, depending on the network's time source",
    )
}
