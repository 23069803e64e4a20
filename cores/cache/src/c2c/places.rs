//! The group that each CPU is in.

use lowlat_host::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// The place of each CPU's group.
pub type Places = BTreeMap<CpuId, usize>;

/// Places of the CPUs of some groups.
pub fn places<'a>(groups: impl IntoIterator<Item = &'a CpuSet>) -> Places {
    let groups = groups.into_iter().enumerate();
    groups.flat_map(|(place, group)| group.iter().map(move |cpu| (cpu, place))).collect()
}

/// True if two CPUs are in one group.
pub fn are_together(places: &Places, a: CpuId, b: CpuId) -> bool {
    places.get(&a).is_some_and(|place| places.get(&b) == Some(place))
}
