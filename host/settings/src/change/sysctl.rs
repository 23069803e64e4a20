//! Sysctls: the running kernel's value, and one file with all keys for the next boot.

use super::files::value;
use super::{Change, Moment, Proposal, Target, WhyLeftOut, grammar};
use crate::{Context, Layer, Risk, Setting, Want, same_meaning};
use lowlat_host::{
    Reading,
    snapshot::{Assignment, sysctl_path},
};
use std::fmt::Write as _;

/// Possible names of the file: the first that sorts after every file that sets one of its keys is used.
/// Names are compared as text, so "100-" would sort before "50-".
const NAMES: [&str; 3] = ["99-zz-lowlat.conf", "zz-lowlat.conf", "zzzz-lowlat.conf"];

/// The row of the guide's own file. lowlat's file contains its keys, even those that need no change.
const GUIDE_FILE: &str = "sysctl.file.100-lowlatency";

/// The row's key with the wanted value.
pub fn key(context: &Context<'_>, setting: &Setting) -> Proposal {
    match value(context, setting) {
        Some(value) => set(context, setting, &value),
        None => Proposal::not(
            WhyLeftOut::YourChoice,
            "several values are possible, and lowlat does not choose one",
        ),
    }
}

/// The same if the wanted state is a bound, for which `bound` is written.
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

/// Reverse path filtering: the kernel uses the larger of the value for all and the interface's value, so
/// both are set.
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
            // sysctl(8) uses slashes as separators if an interface's name has dots.
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

/// The guide's file is never written: its name sorts too early.
pub fn guide_file(_: &Context<'_>, _: &Setting) -> Proposal {
    Proposal::not(
        WhyLeftOut::ByAnother,
        format!(
            "lowlat writes these keys to /etc/sysctl.d/{} instead, because names are compared as text and \
             50-default and 99-sysctl would override 100-lowlatency; keys that this kernel has removed are listed separately",
            NAMES[0]
        ),
    )
}

/// A key that already has its wanted value, and that the file for the next boot contains too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    pub key: String,
    pub value: String,
}

/// The keys of a plan with their values: those that it changes, then those that it holds.
pub(super) fn keys_of<'a>(
    changes: &'a [Change],
    held: &'a [HeldKey],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let planned = move || {
        changes.iter().filter_map(|change| match &change.target {
            Target::Sysctl { key } => Some((key.as_str(), change.after.as_str())),
            _ => None,
        })
    };
    let held = held.iter().map(|held| (held.key.as_str(), held.value.as_str()));
    planned().chain(held.filter(move |(key, _)| !planned().any(|(other, _)| other == *key)))
}

/// The file with all planned and held keys for the next boot, and a warning if another file overrides it; none if no
/// key is planned and the file already contains the held ones.
pub fn file(context: &Context<'_>, changes: &[Change], held: &[HeldKey]) -> Option<(Change, Option<String>)> {
    let keys: Vec<(&str, &str)> = keys_of(changes, held).collect();
    let (name, loser) = name_that_wins(context, &keys.iter().map(|(key, _)| *key).collect::<Vec<_>>());
    let path = format!("/etc/sysctl.d/{name}");
    let own: Vec<_> = context.host.kernel.sysctl_files.iter().filter(|line| line.path == path).collect();
    let is_changed = |change: &Change| matches!(change.target, Target::Sysctl { .. });
    let is_own =
        |key: &str, value: &str| own.iter().any(|line| line.key == key && same_meaning(&line.value, value));
    if !changes.iter().any(is_changed) && keys.iter().all(|(key, value)| is_own(key, value)) {
        return None;
    }
    let before = if own.is_empty() {
        Reading::Absent
    } else {
        let lines = own.iter().map(|line| format!("{} = {}", line.key, line.value));
        Reading::Known(lines.collect::<Vec<_>>().join("\n"))
    };
    let mut after = String::from("# Written by lowlat; changes are lost when it applies a plan.\n");
    let kept = kept(context, &own, &keys);
    for (key, value) in kept.iter().map(|(key, value)| (*key, value.as_str())).chain(keys) {
        let _ = writeln!(after, "{key} = {value}");
    }
    let mut settings: Vec<String> = changes
        .iter()
        .filter(|change| is_changed(change))
        .flat_map(|change| change.settings.clone())
        .collect();
    if settings.is_empty() {
        settings.push(GUIDE_FILE.to_owned());
    }
    let change = Change {
        settings,
        layer: Layer::Sysctl.word().to_owned(),
        target: Target::OwnedFile { path },
        before,
        after,
        moment: Moment::AtBoot,
        reason:
            "Keeps the sysctls after a reboot. If several files set a key, the file whose name sorts last as \
             text wins."
                .to_owned(),
        cost: String::new(),
        risk: Risk::None,
        sources: vec!["sysctl.d(5)".to_owned()],
    };
    let warning = loser.map(|(key, path)| {
        format!("{path} sets {key} and sorts after every name that lowlat can use, so it wins at boot. Change the \
             key there.")
    });
    Some((change, warning))
}

/// Keys that an earlier plan set and that are correct now: they stay in the file. Only keys that a plan can
/// have written count, because the file of a captured host may contain anything.
fn kept<'a>(context: &Context<'_>, own: &[&'a Assignment], keys: &[(&str, &str)]) -> Vec<(&'a str, String)> {
    let is_planned = |name: &str| keys.iter().any(|(key, _)| *key == name);
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

/// The first name after which no file sets one of the keys; if there is none, the last name and the file
/// that overrides it.
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
