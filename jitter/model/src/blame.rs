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

/// True if the time belongs to firmware or hypervisor, or will.
fn is_blamed(cause: &Cause) -> bool {
    matches!(cause.kind, CauseKind::Unexplained | CauseKind::FirmwareOrHypervisor)
}

fn blame_totals(totals: &mut Vec<CauseTotal>) {
    let (blamed, mut merged): (Vec<_>, Vec<_>) = totals.drain(..).partition(|of| is_blamed(&of.cause));
    let cause = Cause::of(CauseKind::FirmwareOrHypervisor);
    let sum = blamed.into_iter().reduce(|sum, total| sum_of(sum, &total));
    merged.extend(sum.map(|sum| CauseTotal { cause, ..sum }));
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
        ..sum
    }
}

fn blame_parts(explained: &mut Explained) {
    let (blamed, mut merged): (Vec<_>, Vec<_>) =
        explained.parts.drain(..).partition(|part| is_blamed(&part.cause));
    let ns = blamed.into_iter().map(|part| part.ns).reduce(u64::saturating_add);
    merged.extend(ns.map(|ns| CausePart { cause: Cause::of(CauseKind::FirmwareOrHypervisor), ns }));
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
