//! Sysctls: the key in force now, and one file that holds them all for the next boot.

use super::files::value;
use super::{Change, Moment, Proposal, Target, WhyLeftOut, grammar};
use crate::{Context, Layer, Risk, Setting, Want};
use lowlat_host::{
    Reading,
    snapshot::{SysctlAssignment, sysctl_path},
};
use std::fmt::Write as _;

/// The names that the file may take, the first that sorts behind every file setting one of its keys wins. Names are
/// compared as text, so "100-" sorts before "50-" and is none of them.
const NAMES: [&str; 3] = ["99-zz-lowlat.conf", "zz-lowlat.conf", "zzzz-lowlat.conf"];

/// The row's own key with the wanted value.
pub fn key(context: &Context<'_>, setting: &Setting) -> Proposal {
    match value(context, setting) {
        Some(value) => set(context, setting, &value),
        None => Proposal::not(
            WhyLeftOut::YourChoice,
            "the wanted state is no single value; lowlat does not choose one",
        ),
    }
}

/// The same where the wanted state is a bound: `bound` is written for it.
pub fn key_or(context: &Context<'_>, setting: &Setting, bound: &str) -> Proposal {
    match setting.want(context.profile) {
        Want::State(_) => set(context, setting, bound),
        _ => key(context, setting),
    }
}

fn set(context: &Context<'_>, setting: &Setting, value: &str) -> Proposal {
    set_key(context, Proposal::default(), setting.name, value)
}

fn set_key(context: &Context<'_>, proposal: Proposal, key: &str, value: &str) -> Proposal {
    match context.host.sysctl(key) {
        Reading::Absent => {
            proposal.but_not(WhyLeftOut::Kernel, format!("this kernel has no {}", sysctl_path(key)))
        }
        before => proposal.step(Target::Sysctl { key: key.to_owned() }, before, value),
    }
}

/// Reverse path filtering: the larger of the value for all and the interface's own counts, so both are set.
pub fn rp_filter(context: &Context<'_>, setting: &Setting) -> Proposal {
    const STRICT: &str = "1";
    const GLOB: &str = "/proc/sys/net/ipv4/conf/*/rp_filter";
    let is_guide = !matches!(setting.want(context.profile), Want::State(_));
    let wanted = if is_guide { "0" } else { "2" };
    let mut proposal = Proposal::default();
    for (path, reading) in context.host.files_matching(GLOB) {
        let Some(name) = path.split('/').nth_back(1) else { continue };
        let carries = match context.role.nics.as_slice() {
            [] => name != "lo",
            nics => matches!(name, "all" | "default") || nics.iter().any(|nic| nic == name),
        };
        let is_wrong = if is_guide { reading.text() != "0" } else { reading.text() == STRICT };
        if carries && is_wrong && reading.is_known() {
            // sysctl(8) takes slashes where an interface's name has dots.
            let key = format!("net.ipv4.conf.{name}.rp_filter");
            if name.contains('.') {
                proposal = proposal.step(Target::File { path: path.to_owned() }, reading.clone(), wanted);
            } else {
                proposal = proposal.step(Target::Sysctl { key }, reading.clone(), wanted);
            }
        }
    }
    proposal
}

/// The guide's own file is never written: its name sorts too early.
pub fn guide_file(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        format!(
            "lowlat writes its keys to /etc/sysctl.d/{} instead: names are compared as text, so 100-lowlatency sorts \
             before 50-default and 99-sysctl, which would win; keys that this kernel no longer has are left out by name",
            NAMES[0]
        ),
    )
}

/// The file that holds every planned key for the next boot, with a warning when another file wins over it; none when
/// no key is planned.
pub fn file(context: &Context<'_>, changes: &[Change]) -> Option<(Change, Option<String>)> {
    let keys: Vec<(&str, &str, &Change)> = changes
        .iter()
        .filter_map(|change| match &change.target {
            Target::Sysctl { key } => Some((key.as_str(), change.after.as_str(), change)),
            _ => None,
        })
        .collect();
    if keys.is_empty() {
        return None;
    }
    let (name, loser) = name_that_wins(context, &keys.iter().map(|(key, ..)| *key).collect::<Vec<_>>());
    let path = format!("/etc/sysctl.d/{name}");
    let own: Vec<_> = context.host.kernel.sysctl_files.iter().filter(|line| line.path == path).collect();
    let before = if own.is_empty() {
        Reading::Absent
    } else {
        let lines = own.iter().map(|line| format!("{} = {}", line.key, line.value));
        Reading::Known(lines.collect::<Vec<_>>().join("\n"))
    };
    let mut after = String::from("# Written by lowlat; changes are lost when it applies a plan.\n");
    for (key, value) in kept(context, &own, &keys) {
        let _ = writeln!(after, "{key} = {value}");
    }
    for (key, value, _) in &keys {
        let _ = writeln!(after, "{key} = {value}");
    }
    let change = Change {
        settings: keys.iter().flat_map(|(.., change)| change.settings.clone()).collect(),
        layer: Layer::Sysctl.word().to_owned(),
        target: Target::OwnedFile { path },
        before,
        after,
        moment: Moment::AtBoot,
        reason: "Keeps the sysctls over a reboot. Of several files that set a key the one whose name sorts last, as \
                 text, wins."
            .to_owned(),
        cost: String::new(),
        risk: Risk::None,
        sources: vec!["sysctl.d(5)".to_owned()],
    };
    let warning = loser.map(|(key, path)| {
        format!("{path} sets {key} and sorts behind every name that lowlat takes: it wins at boot, so change it there.")
    });
    Some((change, warning))
}

/// Keys that an earlier plan set and that are as wanted now: they stay in the file. Only what a plan can have written
/// counts, since the file of a captured host may hold anything.
fn kept<'a>(
    context: &Context<'_>,
    own: &[&'a SysctlAssignment],
    keys: &[(&str, &str, &Change)],
) -> Vec<(&'a str, String)> {
    let is_planned = |name: &str| keys.iter().any(|(key, ..)| *key == name);
    let lines = own.iter().filter(|line| !is_planned(&line.key) && is_of_catalogue(context, &line.key));
    lines
        .filter(|line| grammar::is_sysctl(&line.key, &line.value))
        .filter_map(|line| Some((line.key.as_str(), grammar::numbers(&line.value)?)))
        .collect()
}

fn is_of_catalogue(context: &Context<'_>, key: &str) -> bool {
    let is_row = context.catalogue.settings().any(|row| row.layer == Layer::Sysctl && row.name == key);
    is_row || (key.starts_with("net.ipv4.conf.") && key.ends_with(".rp_filter"))
}

/// The first name behind which no other file sets one of the keys; with none, the last name and who wins over it.
pub fn name_that_wins(context: &Context<'_>, keys: &[&str]) -> (&'static str, Option<(String, String)>) {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let winner = |name: &str| {
        let lines = context.host.kernel.sysctl_files.iter();
        lines
            .filter(|line| keys.contains(&line.key.as_str()))
            .find(|line| file_name(&line.path).as_str() > name)
            .map(|line| (line.key.clone(), line.path.clone()))
    };
    let last = NAMES[NAMES.len() - 1];
    NAMES
        .into_iter()
        .find(|name| winner(name).is_none())
        .map_or_else(|| (last, winner(last)), |name| (name, None))
}
