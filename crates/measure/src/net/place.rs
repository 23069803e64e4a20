//! CPUs of the measuring threads.

use crate::affinity;
use lowlat_host::{CpuId, CpuSet};
use lowlat_sys::Root;

/// Chooses a CPU: the highest isolated one that this process may use, else the highest of its mask. `taken` is left out
/// if another remains.
pub fn choose(root: &Root, taken: Option<CpuId>) -> Option<CpuId> {
    let isolated = root.read_cpu_list("/sys/devices/system/cpu/isolated").into_known().unwrap_or_default();
    let isolated = affinity::settable(&isolated).unwrap_or_default();
    let allowed = affinity::current().unwrap_or_default();
    choose_from(&isolated, &allowed, taken)
}

fn choose_from(isolated: &CpuSet, allowed: &CpuSet, taken: Option<CpuId>) -> Option<CpuId> {
    let free =
        |cpus: &CpuSet| taken.map_or_else(|| cpus.clone(), |taken| cpus.difference(&CpuSet::of(taken)));
    [free(isolated), free(allowed), allowed.clone()].iter().find_map(CpuSet::highest)
}

/// Pins the calling thread.
///
/// # Errors
/// A sentence if the CPU cannot be used.
pub fn pin(cpu: Option<CpuId>) -> Result<(), String> {
    let Some(cpu) = cpu else { return Ok(()) };
    affinity::pin_to(&CpuSet::of(cpu)).map_err(|error| error.to_string())
}

/// Whether this process can run on a CPU.
pub fn is_usable(cpu: CpuId) -> bool {
    affinity::settable(&CpuSet::of(cpu)).is_ok_and(|cpus| !cpus.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_cpus_come_first_and_a_taken_one_last() {
        let of = |isolated: &str, allowed: &str, taken| {
            choose_from(&CpuSet::parse_list(isolated).unwrap(), &CpuSet::parse_list(allowed).unwrap(), taken)
        };
        assert_eq!((of("2-3", "0-1", None), of("2-3", "0-1", Some(3))), (Some(3), Some(2)));
        assert_eq!((of("3", "0-1", Some(3)), of("", "0-1", Some(1))), (Some(1), Some(0)));
        assert_eq!((of("", "5", Some(5)), of("", "", None)), (Some(5), None));
    }
}
