//! Parameters of interfaces, as `ethtool` sets them.

use super::Gathering;
use lowlat_settings::change::{Change, Ethtool, Mechanism};
use lowlat_undo::{Comparison, State, TargetSpec, UndoError};

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    (nic, group, name): (&str, &Ethtool, &str),
) -> Result<(), UndoError> {
    let after = gathering.after(change);
    if !gathering.host.nics.iter().any(|found| found.name == nic) {
        gathering.leave(change, format!("interface {nic} no longer exists"));
        return Ok(());
    }
    gathering.value(change, spec(group, nic, name, after), after)
}

fn spec(group: &Ethtool, nic: &str, name: &str, after: &str) -> TargetSpec {
    let is_number = after.parse::<u64>().is_ok();
    let comparison = if is_number { Comparison::Number } else { Comparison::Words };
    TargetSpec { kind: group.undo_kind.to_owned(), name: format!("{nic} {name}"), comparison }
}

/// Reports, in the run-time part, a parameter of an earlier part with another value. Unreadable ones were
/// reported there.
pub(super) fn must_be_set(gathering: &mut Gathering<'_>, change: usize, planned: &Change) {
    let kind = planned.target.kind();
    let Mechanism::Ethtool { nic, group, name } = kind.facts().mechanism else { return };
    let spec = spec(group, nic, name, &planned.after);
    if let Some(State::Value(present)) = gathering.glance(&spec)
        && !spec.comparison.same_text(&present, &planned.after)
    {
        let (present, after) = (present.trim(), &planned.after);
        let text = format!(
            "{nic} still has {present} queues ({name}) instead of {after}; queues are set before everything else, \
             because the interrupts depend on them"
        );
        gathering.leave(change, text);
    }
}
