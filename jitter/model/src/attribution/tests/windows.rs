//! Unexplained time, classified by the counters of firmware and hypervisor.

use super::bench::*;
use crate::{CauseKind, CpuCauses};

fn ns_of(causes: &CpuCauses, kind: CauseKind) -> (u64, u64, u64) {
    let of_kind = |total: &&crate::CauseTotal| total.cause.kind == kind;
    causes.totals.iter().find(of_kind).map_or((0, 0, 0), |total| (total.count, total.ns_total, total.ns_max))
}

#[test]
fn unexplained_time_has_the_class_of_its_window() {
    let mut bench = Bench::new();
    // The counter increases in the third window only: the second and the third are affected.
    for (window, moved) in [false, false, true, false, false].into_iter().enumerate() {
        let at = window as u64 * 1_000_000;
        bench.interruption(at, at + 1_000 + window as u64);
        bench.attributor.close_window(moved);
    }
    bench.interruption(6_000_000, 6_005_000);
    let causes = bench.finish();
    assert_eq!(ns_of(&causes, CauseKind::FirmwareOrHypervisor), (2, 2_003, 1_002));
    assert_eq!(ns_of(&causes, CauseKind::Unexplained), (4, 8_007, 5_000));
    let kinds = |kept: &[crate::Explained]| -> Vec<CauseKind> {
        kept.iter().map(|explained| explained.parts[0].cause.kind).collect()
    };
    let (firmware, unexplained) = (CauseKind::FirmwareOrHypervisor, CauseKind::Unexplained);
    assert_eq!(kinds(&causes.first), [unexplained, firmware, firmware, unexplained]);
    assert_eq!(kinds(&causes.worst), [unexplained, unexplained, unexplained, firmware]);
}

#[test]
fn the_last_windows_have_what_is_known() {
    let mut bench = Bench::new();
    bench.interruption(100, 1_100);
    bench.attributor.close_window(true);
    bench.interruption(2_000_000, 2_003_000);
    let causes = bench.finish();
    assert_eq!(ns_of(&causes, CauseKind::FirmwareOrHypervisor), (1, 1_000, 1_000));
    assert_eq!(ns_of(&causes, CauseKind::Unexplained), (1, 3_000, 3_000));
    assert_eq!(causes.first[0].parts[0].cause.kind, CauseKind::FirmwareOrHypervisor);
    assert_eq!(causes.first[1].parts[0].cause.kind, CauseKind::Unexplained);
}

#[test]
fn what_is_named_is_never_the_firmwares() {
    let mut bench = Bench::new();
    bench.events(&[(500, enter(NVME)), (900, exit(NVME))]);
    bench.interruption(200, 1_000);
    bench.attributor.close_window(true);
    bench.attributor.close_window(true);
    let causes = bench.finish();
    assert_eq!(ns_of(&causes, CauseKind::FirmwareOrHypervisor), (0, 0, 0));
    // Including entry and exit.
    assert_eq!(ns_of(&causes, CauseKind::Irq), (1, 800, 800));
}

/// Only time between the kernel's events can be unnamed time of the kernel.
#[test]
fn what_the_kernel_left_unnamed_is_counted_apart() {
    let mut bench = Bench::new();
    bench.events(&[(30_000, enter(NVME)), (31_000, exit(NVME)), (60_000, enter(NVME)), (61_000, exit(NVME))]);
    bench.interruption(0, 100_000);
    bench.interruption(200_000, 300_000);
    let causes = bench.finish();
    // Of 30 us before, 29 us between and 39 us after, entry and exit explain 10 us each.
    assert_eq!(causes.kernel_count, 1);
    assert_eq!(causes.kernel_ns_total, 100_000 - 20_000 - 29_000);
    assert_eq!(causes.kernel_unnamed_ns_total, 19_000);
    assert_eq!(ns_of(&causes, CauseKind::Unexplained).1, 20_000 + 19_000 + 29_000 + 100_000);
}

/// Regular interruptions have the same count in each whole second, whenever windows close and however the run ends.
#[test]
fn numbers_by_second_do_not_depend_on_windows() {
    let mut bench = Bench::new();
    for at in 0..1_400_u64 {
        let before = at * 4_000_000 + 1_000;
        bench.interruption(before, before + 2_000);
        if at % 263 == 262 {
            bench.attributor.close_window(false);
        }
    }
    bench.attributor.close_window(false);
    let causes = bench.finish_after(5_600_000_000);
    let by_second: Vec<(u64, u64)> =
        causes.totals.iter().map(|total| (total.windowed_count, total.windowed_square_sum)).collect();
    assert_eq!((causes.window_count, by_second), (5, vec![(1_250, 5 * 250 * 250)]));
}
