//! TuneD: a profile of lowlat's own, and its settings. It is never stopped.

use super::{Change, Moment, Proposal, Target, WhyLeftOut, grammar};
use crate::{Context, Setting};
use lowlat_host::{Profile, Reading};

/// Where TuneD leaves the parameters that it asks the boot loader for.
pub const BOOTCMDLINE: &str = "/etc/tuned/bootcmdline";

/// Never: TuneD undoes its profile when it stops.
pub fn never_stop_tuned(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::Harmful,
        "with rollback=auto a stopped TuneD undoes its whole profile, the boot parameters in grubenv too; lowlat leaves \
         it running and sets rollback=not_on_exit (service.tuned.rollback)",
    )
}

/// The key of TuneD's main file; the file takes no drop-in.
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

/// A profile of lowlat's own on top of the present one, so that TuneD and lowlat want the same: TuneD sets its values
/// again whenever it starts. What the present profile sets and lowlat doesn't stays.
pub fn tuned_profile(context: &Context<'_>, _: &Setting) -> Proposal {
    if context.profile == Profile::Guide57037 {
        return Proposal::not(
            WhyLeftOut::ByAnother,
            "the plan writes boot parameters and run-time values itself; `lowlat tune export --format tuned` writes the \
             guide's profile for this host",
        );
    }
    let services = &context.host.services;
    let is_running = services.units.get("tuned.service").is_some_and(|unit| unit.active.text() == "active");
    let Reading::Known(present) = &services.tuned.profile else { return Proposal::default() };
    if !is_running {
        return Proposal::not(
            WhyLeftOut::StateOfTheMoment,
            format!(
                "TuneD does not run; when it starts it applies {present}: plan again then, or disable it"
            ),
        );
    }
    if !present.split_whitespace().all(grammar::is_profile) {
        return Proposal::not(
            WhyLeftOut::Unfit,
            "/etc/tuned/active_profile does not hold names of profiles; choose a profile with `tuned-adm profile`",
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

/// The name of lowlat's own profile.
const PROFILE: &str = "lowlat";
/// There since TuneD 2.23, which looks for profiles in a folder of their own.
const NEW_LAYOUT: &str = "/usr/lib/tuned/profiles/balanced/tuned.conf";

/// The file of lowlat's own profile, when the changes switch TuneD to it. It holds the planned sysctls, since those
/// are what most profiles set too.
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
        reason: "TuneD sets its profile's values whenever it starts. This profile keeps the present one and puts the \
                 planned values over it."
            .to_owned(),
        cost: String::new(),
        ..switch.clone()
    })
}

/// The guide's profile is not written by a plan.
pub fn tuned_include(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        "the plan writes boot parameters and run-time values itself and needs no TuneD profile of that name",
    )
}

/// What TuneD asked of the boot loader and is not in force.
pub fn tuned_bootloader(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::YourChoice,
        "reboot, and look again: what TuneD asked for and the line still lacks was lost by its boot loader support",
    )
}
