//! Pools of huge pages.

use super::Gathering;
use lowlat_sys::undo::{Comparison, TargetSpec, UndoError};

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    node: Option<u32>,
    size_bytes: u64,
    after: &str,
) -> Result<(), UndoError> {
    if after.trim().parse::<u64>().is_err() {
        gathering.leave(change, format!("the plan wants {after:?}, expected a number of pages"));
        return Ok(());
    }
    // The host's own pool by size: /proc/sys/vm/nr_hugepages is that of the default size only.
    let above = match node {
        Some(node) => format!("/sys/devices/system/node/node{node}"),
        None => "/sys/kernel/mm".to_owned(),
    };
    let path = format!("{above}/hugepages/hugepages-{}kB/nr_hugepages", size_bytes >> 10);
    gathering.value(change, TargetSpec::value(path, Comparison::Number), after)
}
