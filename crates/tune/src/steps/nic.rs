//! What ethtool sets: queues, coalescing, features.

use super::Gathering;
use lowlat_settings::change::{Change, Target};
use lowlat_sys::undo::{Comparison, State, TargetSpec, UndoError};

const CHANNELS: &str = "nic-channels";

pub(super) fn channels(
    gathering: &mut Gathering<'_>,
    change: usize,
    nic: &str,
    field: &str,
    after: &str,
) -> Result<(), UndoError> {
    set(gathering, change, (CHANNELS, nic, field), after)
}

pub(super) fn coalescing(
    gathering: &mut Gathering<'_>,
    change: usize,
    nic: &str,
    field: &str,
    after: &str,
) -> Result<(), UndoError> {
    set(gathering, change, ("nic-coalescing", nic, field), after)
}

pub(super) fn feature(
    gathering: &mut Gathering<'_>,
    change: usize,
    nic: &str,
    feature: &str,
    after: &str,
) -> Result<(), UndoError> {
    set(gathering, change, ("nic-feature", nic, feature), after)
}

fn set(
    gathering: &mut Gathering<'_>,
    change: usize,
    (kind, nic, field): (&str, &str, &str),
    after: &str,
) -> Result<(), UndoError> {
    if !gathering.host.nics.iter().any(|found| found.name == nic) {
        gathering.leave(change, format!("interface {nic} is no longer there"));
        return Ok(());
    }
    gathering.value(change, spec(kind, nic, field, after), after)
}

fn spec(kind: &str, nic: &str, field: &str, after: &str) -> TargetSpec {
    let is_number = after.parse::<u64>().is_ok();
    let comparison = if is_number { Comparison::Number } else { Comparison::Words };
    TargetSpec { kind: kind.to_owned(), name: format!("{nic} {field}"), comparison }
}

/// In the run-time part: tells when the part before it has not been applied. What cannot be read was told there.
pub(super) fn queues_must_be_set(gathering: &mut Gathering<'_>, change: usize, planned: &Change) {
    let Target::NicChannels { nic, field } = &planned.target else { return };
    let spec = spec(CHANNELS, nic, field, &planned.after);
    if let Some(State::Value(present)) = gathering.glance(&spec)
        && !spec.comparison.same_text(&present, &planned.after)
    {
        let (present, after) = (present.trim(), &planned.after);
        let text = format!(
            "{nic} still has {present} queues ({field}) and not {after}: its interrupts come and go with them, so they \
             are set before everything else"
        );
        gathering.leave(change, text);
    }
}
