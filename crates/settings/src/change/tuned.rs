//! TuneD: lowlat's profile for it, and its settings. It is never stopped.

use super::{Change, Moment, Proposal, Target, WhyLeftOut, grammar};
use crate::{Context, Setting};
use lowlat_host::{Profile, Reading};

/// Where TuneD records the parameters that it requests from the boot loader.
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

/// A profile on top of the present one with lowlat's values, because TuneD sets its values again whenever it
/// starts. Other values of the present profile stay.
pub fn tuned_profile(context: &Context<'_>, _: &Setting) -> Proposal {
    if context.profile == Profile::Guide57037 {
        return Proposal::not(
            WhyLeftOut::ByAnother,
            "the plan sets boot parameters and run-time values directly; `lowlat tune export --format tuned` writes \
             the guide's profile for this host",
        );
    }
    let services = &context.host.services;
    let is_running = services.units.get("tuned.service").is_some_and(|unit| unit.active.text() == "active");
    let Reading::Known(present) = &services.tuned.profile else { return Proposal::default() };
    if !is_running {
        return Proposal::not(
            WhyLeftOut::StateOfTheMoment,
            format!(
                "TuneD is not running, and applies {present} when it starts; plan again then, or disable it"
            ),
        );
    }
    if !present.split_whitespace().all(grammar::is_profile) {
        return Proposal::not(
            WhyLeftOut::Unfit,
            "/etc/tuned/active_profile contains no names of profiles; choose a profile with `tuned-adm profile`",
        );
    }
    let before = match services.tuned.mode.text().trim() {
        "" => present.clone(),
        mode => format!("{present} {mode}"),
    };
    Proposal::default().step_at(
        Moment::NowAndAtBoot,
        Target::TunedProfile,
        Reading::Known(before),
        format!("{PROFILE} manual"),
    )
}

/// The name of lowlat's profile.
const PROFILE: &str = "lowlat";
/// Exists since TuneD 2.23, which has a separate directory for profiles.
const NEW_LAYOUT: &str = "/usr/lib/tuned/profiles/balanced/tuned.conf";

/// The file of lowlat's profile, if the changes switch TuneD to it. It contains the planned sysctls, because
/// most profiles set those.
pub fn file(context: &Context<'_>, changes: &[Change]) -> Option<Change> {
    let switch = changes.iter().find(|change| change.target == Target::TunedProfile)?;
    let present: Vec<&str> = context.host.services.tuned.profile.text().split_whitespace().collect();
    let folder = if context.host.file(NEW_LAYOUT).is_known() { "/etc/tuned/profiles" } else { "/etc/tuned" };
    let mut after = format!(
        "# Written by lowlat; changes are lost when it applies a plan.\n[main]\nsummary=Low latency by lowlat, on top of \
         {}\ninclude={}\n",
        present.join(" "),
        present.join(",")
    );
    let sysctls = changes.iter().filter_map(|change| match &change.target {
        Target::Sysctl { key } => Some(format!("{key}={}\n", change.after)),
        _ => None,
    });
    let sysctls: String = sysctls.collect();
    if !sysctls.is_empty() {
        after.push_str("\n[sysctl]\n");
        after.push_str(&sysctls);
    }
    Some(Change {
        target: Target::OwnedFile { path: format!("{folder}/{PROFILE}/tuned.conf") },
        before: Reading::Absent,
        after,
        moment: Moment::AtBoot,
        reason:
            "TuneD sets its profile's values whenever it starts. This profile includes the present one and \
             overrides it with the planned values."
                .to_owned(),
        cost: String::new(),
        ..switch.clone()
    })
}

/// The guide's profile is not written by a plan.
pub fn tuned_include(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the plan sets boot parameters and run-time values directly and does not need a TuneD profile of that name",
    )
}

/// Parameters that TuneD requested from the boot loader and that are not active.
pub fn tuned_bootloader(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "reboot and check again: parameters that are still missing were lost by TuneD's boot loader support",
    )
}
