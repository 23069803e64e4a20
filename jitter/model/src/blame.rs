//! Facts about firmware that are known only after a run.

use super::{Cause, CauseKind, CausePart, CauseTotal, CpuCauses, Explained};
use std::cmp::Reverse;

impl CpuCauses {
    /// Assigns all unexplained time to firmware or hypervisor, on a CPU whose SMI count increased during the
    /// run and was read only before and after it. All sums stay the same.
    pub fn blame_firmware(&mut self) {
        blame_totals(&mut self.totals);
        for explained in self.worst.iter_mut().chain(&mut self.first) {
            blame_parts(explained);
        }
    }
}

/// The cause to use instead of this one; `None` if it may stay.
fn blamed(cause: &Cause) -> Option<Cause> {
    (cause.kind == CauseKind::Unexplained).then(|| Cause::of(CauseKind::FirmwareOrHypervisor))
}

fn blame_totals(totals: &mut Vec<CauseTotal>) {
    let mut merged: Vec<CauseTotal> = Vec::with_capacity(totals.len());
    let mut of_firmware: Option<CauseTotal> = None;
    for mut total in totals.drain(..) {
        if let Some(cause) = blamed(&total.cause) {
            total.cause = cause;
        }
        if total.cause.kind == CauseKind::FirmwareOrHypervisor {
            of_firmware = Some(match of_firmware {
                Some(sum) => sum_of(sum, &total),
                None => total,
            });
        } else {
            merged.push(total);
        }
    }
    merged.extend(of_firmware);
    merged.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.cause.cmp(&b.cause)));
    *totals = merged;
}

/// The sum of both. Unexplained time in one interruption is of one kind, so no interruption counts twice.
fn sum_of(sum: CauseTotal, total: &CauseTotal) -> CauseTotal {
    CauseTotal {
        count: sum.count.saturating_add(total.count),
        main_count: sum.main_count.saturating_add(total.main_count),
        ns_total: sum.ns_total.saturating_add(total.ns_total),
        entry_exit_ns: sum.entry_exit_ns.saturating_add(total.entry_exit_ns),
        ns_max: sum.ns_max.max(total.ns_max),
        windowed_count: sum.windowed_count.saturating_add(total.windowed_count),
        windowed_square_sum: sum.windowed_square_sum.saturating_add(total.windowed_square_sum),
        allowed_cpus: sum.allowed_cpus,
        cause: sum.cause,
    }
}

fn blame_parts(explained: &mut Explained) {
    let mut merged: Vec<CausePart> = Vec::with_capacity(explained.parts.len());
    for mut part in explained.parts.drain(..) {
        if let Some(cause) = blamed(&part.cause) {
            part.cause = cause;
        }
        let is_firmware = part.cause.kind == CauseKind::FirmwareOrHypervisor;
        match merged.iter_mut().find(|other| is_firmware && other.cause == part.cause) {
            Some(other) => other.ns = other.ns.saturating_add(part.ns),
            None => merged.push(part),
        }
    }
    merged.sort_by_key(|part| Reverse(part.ns));
    explained.parts = merged;
}

#[cfg(test)]
mod tests {
    use super::*;
    use CauseKind::{FirmwareOrHypervisor, Irq, NotTraced, Unexplained};

    fn total(kind: CauseKind, count: u64, ns_total: u64, ns_max: u64) -> CauseTotal {
        let cause = Cause::of(kind);
        CauseTotal { cause, count, main_count: count - 1, ns_total, ns_max, ..CauseTotal::default() }
    }

    fn explained(parts: &[(CauseKind, u64)]) -> Explained {
        let part = |(kind, ns): &(CauseKind, u64)| CausePart { cause: Cause::of(*kind), ns: *ns };
        Explained { parts: parts.iter().map(part).collect(), ..Explained::default() }
    }

    #[test]
    fn what_is_unexplained_becomes_the_firmwares() {
        let mut causes = CpuCauses {
            totals: vec![
                total(Irq, 5, 500, 100),
                total(Unexplained, 4, 400, 90),
                total(FirmwareOrHypervisor, 3, 300, 120),
                total(NotTraced, 2, 200, 100),
            ],
            worst: vec![explained(&[(Unexplained, 120), (Irq, 50)])],
            first: vec![
                explained(&[(Irq, 50), (Unexplained, 40), (FirmwareOrHypervisor, 30)]),
                explained(&[(NotTraced, 9)]),
            ],
            ..CpuCauses::default()
        };
        causes.blame_firmware();
        let wanted = [
            total(FirmwareOrHypervisor, 7, 700, 120),
            total(Irq, 5, 500, 100),
            total(NotTraced, 2, 200, 100),
        ];
        // One part of each was not the longest.
        let wanted = wanted.map(|total| CauseTotal {
            main_count: if total.count == 7 { 5 } else { total.main_count },
            ..total
        });
        assert_eq!(causes.totals, wanted);
        assert_eq!(causes.worst, [explained(&[(FirmwareOrHypervisor, 120), (Irq, 50)])]);
        assert_eq!(
            causes.first,
            [explained(&[(FirmwareOrHypervisor, 70), (Irq, 50)]), explained(&[(NotTraced, 9)])]
        );
        let before = causes.clone();
        causes.blame_firmware();
        assert_eq!(causes, before, "again it says the same");
    }

    #[test]
    fn where_all_is_explained_nothing_changes() {
        for totals in [Vec::new(), vec![total(Irq, 5, 500, 100), total(FirmwareOrHypervisor, 3, 300, 120)]] {
            let mut causes = CpuCauses { totals, ..CpuCauses::default() };
            let before = causes.clone();
            causes.blame_firmware();
            assert_eq!(causes, before);
        }
    }
}
