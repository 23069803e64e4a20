//! Judges of CPU sets that must not include isolated CPUs.

use super::{missing, some_of};
use crate::{Context, Judgement};
use lowlat_host::{BOOT_CPU, CpuSet, Reading, kernel_version::KernelVersion};

/// Maximum number of names that a finding lists.
const LABELS_SHOWN_MAX: usize = 6;

/// The isolated CPUs as a list; `None` if there are none.
pub fn isolated_list(context: &Context<'_>) -> Option<String> {
    let isolated = &context.allocation.isolated;
    (!isolated.is_empty()).then(|| isolated.to_list())
}

/// Kernels before this one reject the second of `isolcpus=` and `nohz_full=` if their lists differ.
const LISTS_MAY_DIFFER_SINCE: KernelVersion = KernelVersion::new(5, 18);

/// The list for `nohz_full=`: the isolated CPUs without the boot CPU. Kernels that want the list of `isolcpus=` there get
/// that one, and remove the boot CPU themselves. `None` if it is empty.
pub fn tickless_list(context: &Context<'_>) -> Option<String> {
    let mut tickless = context.allocation.isolated.clone();
    tickless.remove(BOOT_CPU);
    if super::kernel_at_least(context.host, LISTS_MAY_DIFFER_SINCE) == Some(false) && !tickless.is_empty() {
        return isolated_list(context);
    }
    (!tickless.is_empty()).then(|| tickless.to_list())
}

/// The housekeeping CPUs and the boot CPU, to which the kernel always allows interrupts at boot, as a list; `None` on
/// a host without isolated CPUs.
pub fn boot_irq_list(context: &Context<'_>) -> Option<String> {
    housekeeping_list(context)?;
    let mut cpus = context.allocation.housekeeping.clone();
    cpus.insert(BOOT_CPU);
    Some(cpus.to_list())
}

/// The housekeeping CPUs as a list; `None` on a host without isolated CPUs.
pub fn housekeeping_list(context: &Context<'_>) -> Option<String> {
    let allocation = context.allocation;
    (!allocation.isolated.is_empty() && !allocation.housekeeping.is_empty())
        .then(|| allocation.housekeeping.to_list())
}

/// Text of the wanted state "nothing of this kind on the isolated CPUs"; `None` if there are none.
pub fn kept_off_isolated(context: &Context<'_>) -> Option<String> {
    isolated_list(context).map(|_| format!("none on {:#}", context.allocation.isolated))
}

/// Judges labelled CPU sets, each of which must avoid the isolated CPUs. `what` is a plural noun ("kernel
/// threads").
pub fn off_isolated<'a>(
    context: &Context<'_>,
    what: &str,
    place: &str,
    sets: impl Iterator<Item = (String, &'a Reading<CpuSet>)>,
) -> Judgement {
    let isolated = &context.allocation.isolated;
    let (mut all, mut bad, mut unread) = (0, Vec::new(), None);
    for (label, reading) in sets {
        all += 1;
        match reading {
            Reading::Known(cpus) if cpus.is_disjoint(isolated) => {}
            Reading::Known(cpus) => bad.push(format!("{label} ({})", cpus.intersection(isolated))),
            other => unread = unread.or(Some(other)),
        }
    }
    match (bad.is_empty(), unread) {
        (false, _) => Judgement::wrong(
            format!(
                "{} of {all} {what} may use isolated CPUs: {}",
                bad.len(),
                some_of(&bad, LABELS_SHOWN_MAX)
            ),
            "",
        )
        .at(place),
        (true, Some(reading)) => missing(reading, place),
        (true, None) if all == 0 => Judgement::unknown(format!("no {what} found in {place}")).at(place),
        (true, None) => Judgement::good(format!("{all} {what} avoid isolated CPUs")).at(place),
    }
}
