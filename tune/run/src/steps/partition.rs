//! Partitions of CPUs and caches, which do not exist before they are formed.

use super::{Gathering, gathering::cpu_list};
use crate::targets::{cpuset::Partitions, resctrl::CacheGroups};
use lowlat_undo::{State, TargetSpec, UndoError};

pub(super) fn cpuset(
    gathering: &mut Gathering<'_>,
    change: usize,
    slice: &str,
    after: &str,
) -> Result<(), UndoError> {
    if cpu_list(gathering, change, after).is_none() {
        return Ok(());
    }
    formed(gathering, change, Partitions::spec(slice), after)
}

pub(super) fn cache(
    gathering: &mut Gathering<'_>,
    change: usize,
    group: &str,
    after: &str,
) -> Result<(), UndoError> {
    formed(gathering, change, CacheGroups::spec(group), after)
}

fn formed(
    gathering: &mut Gathering<'_>,
    change: usize,
    spec: TargetSpec,
    after: &str,
) -> Result<(), UndoError> {
    let Some(old) = gathering.present(change, &spec)? else { return Ok(()) };
    gathering.step(change, spec, old, State::Value(after.to_owned()))
}
