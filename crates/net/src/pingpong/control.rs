//! Whether the control moved.

use super::ControlRow;
use std::collections::BTreeMap;

/// Ratio of two controls between the same CPUs from which the figures measured around them are not comparable.
pub const CONTROL_RATIO_MAX: f64 = 1.5;

/// Returns the ratio of the slowest to the fastest control, by median, for the pair of CPUs that moved most; `None` if no
/// pair has two controls.
pub fn control_ratio<'a>(rows: impl IntoIterator<Item = &'a ControlRow>) -> Option<f64> {
    let mut pairs: BTreeMap<_, (u64, u64, usize)> = BTreeMap::new();
    for row in rows {
        let (a, b) = (row.client_cpu, row.server_cpu);
        let ns = row.figures.median_ns.max(1);
        let (low, high, count) = pairs.entry((a.min(b), a.max(b))).or_insert((ns, ns, 0));
        (*low, *high, *count) = ((*low).min(ns), (*high).max(ns), *count + 1);
    }
    let repeated = pairs.into_values().filter(|(.., count)| *count > 1);
    repeated.map(|(low, high, _)| high as f64 / low as f64).max_by(f64::total_cmp)
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
    }
}
