//! Rows that want one value for one or several parameters: the row's name lists the parameters, as `ethtool` names
//! them, and its wanted value applies to each.

use super::{each_nic, judged_nics};
use lowlat_host::{Reading, snapshot::Nic};
use lowlat_settings::{
    Context, Judgement, Setting,
    change::{Proposal, files::value, nic::NicKind},
    judge::each::One,
    same_meaning,
};

/// The row's parameters that the interface has, with their values.
fn found(kind: &NicKind, nic: &Nic, setting: &Setting) -> Vec<(&'static str, Reading<String>)> {
    let names = setting.name.split(", ").map(|name| (name, (kind.get)(nic, name)));
    names.filter(|(_, value)| !value.is_absent()).collect()
}

/// Judges every parameter of the row on each interface. `when_absent` explains what it means if the driver has none of
/// them.
pub(super) fn judge(
    context: &Context<'_>,
    setting: &Setting,
    kind: &NicKind,
    when_absent: impl Fn(&Nic) -> &'static str,
) -> Judgement {
    let wanted = value(context, setting).unwrap_or_default();
    each_nic(context, |nic| {
        let found = found(kind, nic, setting);
        let mut wrong: Vec<(&str, &str)> = Vec::new();
        for (name, value) in &found {
            match value {
                Reading::Known(value) if same_meaning(value, &wanted) => {}
                Reading::Known(value) => wrong.push((name, value)),
                other => return One::missing(other),
            }
        }
        match wrong.as_slice() {
            [] if found.is_empty() => One::Skip(when_absent(nic).into()),
            [] => One::Good(wanted.clone()),
            [(name, value)] if *name == setting.name => {
                let unit = if name.contains("usecs") { " us" } else { "" };
                One::Wrong(format!("{value}{unit}"), String::new())
            }
            [(_, value), ..] => {
                let names: Vec<&str> = wrong.iter().map(|(name, _)| *name).collect();
                One::Wrong(format!("{} {value}", names.join(", ")), String::new())
            }
        }
    })
}

/// Sets every parameter that has another value.
pub(super) fn change(context: &Context<'_>, setting: &Setting, kind: &'static NicKind) -> Proposal {
    change_after(Proposal::default(), context, setting, kind)
}

/// Adds the changes of [`change`] to those that come first.
pub(super) fn change_after(
    mut proposal: Proposal,
    context: &Context<'_>,
    setting: &Setting,
    kind: &'static NicKind,
) -> Proposal {
    let Some(wanted) = value(context, setting) else { return proposal };
    for nic in judged_nics(context) {
        for (name, before) in found(kind, nic, setting) {
            if before.known().is_some_and(|now| !same_meaning(now, &wanted)) {
                proposal = proposal.step(kind.of(&nic.name, name), before, &wanted);
            }
        }
    }
    proposal
}
