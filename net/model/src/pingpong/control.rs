//! Detects controls that moved.

use super::ControlRow;
use std::collections::BTreeMap;

/// Ratio of two controls between the same CPUs from which the figures measured around them are not comparable.
pub const CONTROL_RATIO_MAX: f64 = 1.5;

/// A figure holds up to about this many transfers between the CPUs: a control that moved by less than this part of it
/// did not move the figure by more than the rounds do.
const TRANSFERS_MAX: f64 = 50.0;

/// Returns the ratio of the slowest to the fastest control, by median, for the pair of CPUs that moved most; `None` if
/// no pair has two controls.
pub fn control_ratio<'a>(rows: impl IntoIterator<Item = &'a ControlRow>) -> Option<f64> {
    spans(rows).map(|[low, high]| high / low).max_by(f64::total_cmp)
}

/// Returns the ratio of a control that moved by more than [`CONTROL_RATIO_MAX`], and by enough nanoseconds for the
/// shortest figure measured around it; `None` if none did.
pub fn control_moved<'a>(
    rows: impl IntoIterator<Item = &'a ControlRow>,
    figures_ns: impl IntoIterator<Item = f64>,
) -> Option<f64> {
    let shortest_ns = figures_ns.into_iter().min_by(f64::total_cmp).unwrap_or(0.0);
    let matters =
        |[low, high]: &[f64; 2]| high / low > CONTROL_RATIO_MAX && (high - low) * TRANSFERS_MAX > shortest_ns;
    spans(rows).filter(matters).map(|[low, high]| high / low).max_by(f64::total_cmp)
}

/// The fastest and the slowest control of each pair of CPUs that has two, by median, in nanoseconds.
fn spans<'a>(rows: impl IntoIterator<Item = &'a ControlRow>) -> impl Iterator<Item = [f64; 2]> {
    let mut pairs: BTreeMap<_, (u64, u64, usize)> = BTreeMap::new();
    for row in rows {
        let (a, b) = (row.client_cpu, row.server_cpu);
        let ns = row.figures.median_ns.max(1);
        let (low, high, count) = pairs.entry((a.min(b), a.max(b))).or_insert((ns, ns, 0));
        (*low, *high, *count) = ((*low).min(ns), (*high).max(ns), *count + 1);
    }
    let repeated = pairs.into_values().filter(|(.., count)| *count > 1);
    repeated.map(|(low, high, _)| [low as f64, high as f64])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pingpong::Figures;

    #[test]
    fn a_pair_of_cpus_is_compared_with_itself_in_either_direction() {
        let row = |client_cpu, server_cpu, median_ns| ControlRow {
            client_cpu,
            server_cpu,
            figures: Figures { median_ns, ..Figures::default() },
            ..ControlRow::default()
        };
        assert_eq!(control_ratio(&[row(0, 1, 60), row(0, 2, 240)]), None, "two pairs, one control each");
        let rows = [row(0, 1, 60), row(1, 0, 240), row(0, 2, 100), row(0, 2, 110)];
        assert_eq!(control_ratio(&rows), Some(4.0));
        assert_eq!(control_ratio(&[row(0, 1, 0), row(0, 1, 0)]), Some(1.0));
        // 180 ns matter to a figure of 3 us, and not to one of 25 us; 10 ns are within the ratio.
        assert_eq!(control_moved(&rows, [25_000.0, 3_000.0]), Some(4.0));
        assert_eq!(control_moved(&rows, [25_000.0]), None);
        assert_eq!(control_moved(&rows, []), Some(4.0), "nothing is known of what was measured");
        assert_eq!(control_moved(&rows[2..], [100.0]), None);
    }
}
