//! Converts ticks and keys to the contents of a record: nanoseconds that still sum up, and names.

use super::{
    kept::KeptInterruption,
    keys::{CauseKey, KeyId, KeyTable},
    names::CauseNames,
    senders::SenderId,
    timeline::RawStep,
    totals::{BySecond, Sum},
    windows::Windows,
};
use crate::{Cause, CausePart, CauseTotal, Explained, Interruption, TimelineStep};
use lowlat_host::TickScale;
use std::cmp::Reverse;

/// Converts ticks and keys for a record.
pub(super) struct RecordWriter<'a> {
    pub(super) scale: TickScale,
    pub(super) keys: &'a KeyTable,
    pub(super) names: CauseNames<'a>,
    pub(super) windows: Windows,
}

impl RecordWriter<'_> {
    fn cause(&self, id: KeyId) -> Cause {
        self.names.cause(self.keys.key(id))
    }

    pub(super) fn totals(&self, ticks: u64, sums: Vec<(CauseKey, Sum, BySecond)>) -> Vec<CauseTotal> {
        let parts: Vec<u64> = sums.iter().map(|(_, sum, _)| sum.ticks).collect();
        let shares = share_out(self.scale.ns(ticks), &parts);
        let mut totals: Vec<CauseTotal> = sums
            .into_iter()
            .zip(shares)
            .map(|((key, sum, by_second), ns_total)| CauseTotal {
                cause: self.names.cause(key),
                allowed_cpus: self.names.allowed_cpus(key),
                count: sum.count,
                main_count: sum.main_count,
                ns_total,
                entry_exit_ns: self.scale.ns(sum.entry_exit_ticks).min(ns_total),
                ns_max: self.scale.ns(sum.ticks_max).min(ns_total),
                windowed_count: by_second.count,
                windowed_square_sum: by_second.square_sum,
            })
            .collect();
        totals.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.cause.cmp(&b.cause)));
        totals
    }

    pub(super) fn explained(&self, kept: &KeptInterruption) -> Explained {
        let length_ns = self.scale.ns(kept.span.length);
        let parts: Vec<(KeyId, u64)> = kept.classed_parts(self.windows).collect();
        let ticks: Vec<u64> = parts.iter().map(|(_, ticks)| *ticks).collect();
        let shares = share_out(length_ns, &ticks);
        let mut parts: Vec<CausePart> = parts
            .into_iter()
            .zip(shares)
            .filter(|(_, ns)| *ns > 0)
            .map(|((id, _), ns)| CausePart { cause: self.cause(id), ns })
            .collect();
        parts.sort_by_key(|part| Reverse(part.ns));
        Explained {
            interruption: Interruption { at_ns: self.scale.ns(kept.span.at), length_ns },
            parts,
            timeline: kept.steps.iter().map(|step| self.step(*step)).collect(),
            timeline_cut_count: kept.steps_cut_count,
        }
    }

    fn step(&self, step: RawStep) -> TimelineStep {
        let ns = i64::try_from(self.scale.ns(step.offset.unsigned_abs())).unwrap_or(i64::MAX);
        TimelineStep {
            offset_ns: if step.offset < 0 { -ns } else { ns },
            depth: step.depth,
            change: step.change,
            cause: self.cause(step.key),
            sender: step.sender.and_then(SenderId::place),
        }
    }
}

/// Divides `total_ns` in proportion to `parts`: each is rounded down, and the largest (the first of equal
/// ones) gets the remainder. The shares sum to `total_ns` unless all parts are 0.
fn share_out(total_ns: u64, parts: &[u64]) -> Vec<u64> {
    let whole: u128 = parts.iter().map(|ticks| u128::from(*ticks)).sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    // A share is at most the total, because a part is at most the whole.
    let share = |ticks: &u64| {
        let ns = u128::from(total_ns) * u128::from(*ticks) / whole;
        u64::try_from(ns).unwrap_or(u64::MAX)
    };
    let mut shares: Vec<u64> = parts.iter().map(share).collect();
    let rest = total_ns.saturating_sub(shares.iter().sum());
    let largest = parts.iter().enumerate().max_by_key(|(place, ticks)| (**ticks, Reverse(*place)));
    if let Some(share) = largest.and_then(|(place, _)| shares.get_mut(place)) {
        *share += rest;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_has_the_rest() {
        assert_eq!(share_out(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(share_out(100, &[1, 5, 1]), [14, 72, 14]);
        assert_eq!(share_out(100, &[0, 0]), [0, 0]);
        assert!(share_out(100, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn shares_add_up(total in any::<u64>(), parts in proptest::collection::vec(any::<u64>(), 1..20)) {
            prop_assume!(parts.iter().any(|ticks| *ticks > 0));
            let sum: u128 = share_out(total, &parts).into_iter().map(u128::from).sum();
            prop_assert_eq!(sum, u128::from(total));
        }
    }
}
