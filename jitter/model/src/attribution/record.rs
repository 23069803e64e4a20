//! Converts ticks and keys to the contents of a record: nanoseconds that still sum up, and names.

use super::{
    kept::Kept,
    keys::{CauseKey, KeyId, KeyTable},
    names::CauseNames,
    senders::SenderId,
    share::share_out,
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

    pub(super) fn explained(&self, kept: &Kept) -> Explained {
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
