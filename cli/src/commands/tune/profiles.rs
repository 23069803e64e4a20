//! `lowlat tune plan --list`: the profiles, the one in force and the processors they are for.

use crate::{exit::Exit, host::HostArgs, output};
use lowlat_host::{Profile, Reading};
use lowlat_tune_report::{ProfileLine, profiles_text};
use lowlat_tune_run::flow;
use serde::Serialize;

/// The list, and the profile of the other tool that sets the same values.
#[derive(Debug, Serialize)]
struct Profiles {
    profiles: Vec<ProfileLine>,
    tuned_profile: Reading<String>,
}

pub fn list(arguments: &HostArgs, is_json: bool) -> anyhow::Result<Exit> {
    let read = arguments.read_silently()?;
    let (root, host) = (&read.root, &read.snapshot);
    // A capture does not contain the plan in force.
    let in_force = if root.is_capture() {
        Reading::Absent
    } else {
        flow::status(&super::open(&arguments.root, None)?)?.in_force
    };
    let model = host.cpu.model_name.as_ref();
    let lines = Profile::ALL.map(|profile| ProfileLine {
        name: profile.name(),
        purpose: profile.purpose(),
        is_in_force: in_force.as_ref().map(|plan| plan.profile == profile.name()),
        is_default: profile == Profile::default(),
        suits_processor: match profile {
            Profile::Trading => Reading::Known(true),
            Profile::Guide57037 => model.clone().map(|model| lowlat_plan::is_processor_of_guide(model)),
        },
    });
    let list = Profiles { profiles: lines.into(), tuned_profile: host.services.tuned.profile.clone() };
    output::print_as(is_json, &output::Document::of("lowlat-profiles", &list), |width| {
        profiles_text(
            &list.profiles,
            list.tuned_profile.known().map(String::as_str),
            root.is_capture(),
            width,
        )
    })?;
    Ok(Exit::Clean)
}
