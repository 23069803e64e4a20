//! TuneD: lowlat's profile for it, and its settings. It is never stopped.

use super::{
    Change, Moment, Proposal, Target, WhyLeftOut, grammar,
    sysctl::{HeldKey, keys_of},
};
use crate::{Context, Setting};
use lowlat_host::{Profile, Reading};
use std::fmt::Write as _;

/// File in which TuneD records the parameters that it requests from the boot loader.
pub const BOOTCMDLINE: &str = "/etc/tuned/bootcmdline";

/// Not planned: TuneD rolls its profile back when it stops.
pub fn never_stop_tuned(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::Harmful,
        "with rollback=auto a stopped TuneD rolls its whole profile back, including boot parameters in grubenv; \
         lowlat keeps it running and sets rollback=not_on_exit (service.tuned.rollback)",
    )
}

/// The key of TuneD's main file, which supports no drop-ins.
pub fn tuned_rollback(context: &Context<'_>, _: &Setting) -> Proposal {
    let target =
        Target::FileKey { path: "/etc/tuned/tuned-main.conf".to_owned(), key: "rollback".to_owned() };
    let before = context.host.services.tuned.rollback.clone();
    Proposal::default().step_at(Moment::Now, target, before, "not_on_exit")
}

/// A list in the variables of TuneD's cpu-partitioning, as ranges.
pub fn tuned_variable(context: &Context<'_>, setting: &Setting) -> Proposal {
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

/// A profile with lowlat's values, because TuneD sets its values again whenever it starts. In profile `trading` it
/// extends the present one, whose other values stay. The guide's profile replaces the present one.
pub fn tuned_profile(context: &Context<'_>, _: &Setting) -> Proposal {
    let services = &context.host.services;
    let unit = services.units.get("tuned.service");
    let is_running = unit.is_some_and(|unit| unit.active.text() == "active");
    let is_known = unit.is_some_and(|unit| unit.active.is_known());
    let present = match &services.tuned.profile {
        Reading::Known(present) => present,
        Reading::Absent => {
            return Proposal::not(
                WhyLeftOut::YourChoice,
                "TuneD is not installed, and the plan sets its values without it; install TuneD and plan again to \
                 have a profile",
            );
        }
        _ => return Proposal::default(),
    };
    if !is_running {
        return Proposal::not(
            WhyLeftOut::StateOfTheMoment,
            format!(
                "TuneD is {}, and applies {present} when it starts; plan again then, or disable it",
                if is_known { "not running" } else { "not known to run" }
            ),
        );
    }
    if !present.split_whitespace().all(grammar::is_profile) {
        return Proposal::not(
            WhyLeftOut::Unfit,
            "/etc/tuned/active_profile contains no names of profiles; choose a profile with `tuned-adm profile`",
        );
    }
    let present = if present.trim().is_empty() { OFF } else { present.as_str() };
    let before = match services.tuned.mode.text().trim() {
        "" => present.to_owned(),
        mode => format!("{present} {mode}"),
    };
    Proposal::default().step_at(
        Moment::NowAndAtBoot,
        Target::TunedProfile,
        Reading::Known(before),
        format!("{} manual", name_of_profile(context)),
    )
}

/// The name of lowlat's profile.
const PROFILE: &str = "lowlat";
/// The name of the guide's profile.
pub const GUIDE_PROFILE: &str = "HPELowLatency";
/// The name for no profile in plans.
const OFF: &str = "off";

fn name_of_profile(context: &Context<'_>) -> &'static str {
    match context.profile {
        Profile::Trading => PROFILE,
        Profile::Guide57037 => GUIDE_PROFILE,
    }
}

/// Exists since TuneD 2.23, which has a separate directory for profiles.
const NEW_LAYOUT: &str = "/usr/lib/tuned/profiles/balanced/tuned.conf";

/// The file of lowlat's profile, if the changes switch TuneD to it. It contains the sysctls of the plan, because most
/// profiles set those. The guide's includes no other profile: cpu-partitioning edits the boot loader itself.
pub fn file(context: &Context<'_>, changes: &[Change], held: &[HeldKey]) -> Option<Change> {
    let switch = changes.iter().find(|change| change.target == Target::TunedProfile)?;
    let present: Vec<&str> = context.host.services.tuned.profile.text().split_whitespace().collect();
    let folder = if context.host.file(NEW_LAYOUT).is_known() { "/etc/tuned/profiles" } else { "/etc/tuned" };
    let name = name_of_profile(context);
    let main = match context.profile {
        Profile::Trading => {
            format!(
                "summary=Low latency by lowlat, on top of {}\ninclude={}\n",
                present.join(" "),
                present.join(",")
            )
        }
        Profile::Guide57037 => "summary=Sysctls of guide 57037 by lowlat\n".to_owned(),
    };
    let mut after = format!("# Written by lowlat; changes are lost when it applies a plan.\n[main]\n{main}");
    let mut sysctls = String::new();
    for (key, value) in keys_of(changes, held) {
        let _ = writeln!(sysctls, "{key}={value}");
    }
    if !sysctls.is_empty() {
        after.push_str("\n[sysctl]\n");
        after.push_str(&sysctls);
    }
    Some(Change {
        target: Target::OwnedFile { path: format!("{folder}/{name}/tuned.conf") },
        before: Reading::Absent,
        after,
        moment: Moment::AtBoot,
        reason: "TuneD sets its profile's values whenever it starts. This profile has the planned values."
            .to_owned(),
        cost: String::new(),
        ..switch.clone()
    })
}

/// The planned profile includes no other.
pub fn tuned_include(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "cpu-partitioning edits the boot loader and moves threads outside the undo log; the plan does both directly. \
         `lowlat tune export --format tuned` writes a profile that includes it",
    )
}

/// Parameters that TuneD requested from the boot loader and that are not active.
pub fn tuned_bootloader(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "reboot and check again: parameters that are still missing were lost by TuneD's boot loader support",
    )
}
