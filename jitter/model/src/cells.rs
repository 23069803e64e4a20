//! Lengths of interruptions in cells whose counts can be drawn again, to show how much percentiles vary by chance.

use super::{
    JitterRecord, StudyError, lengths_of,
    wait::{Cell, cells_of, wait_at},
};

/// The lengths of all CPUs of a record together.
#[derive(Debug, Clone)]
pub struct LengthCells {
    /// Longest first.
    cells: Vec<Cell>,
    runtime_ns: f64,
}

impl LengthCells {
    /// The lengths in a record.
    ///
    /// # Errors
    /// [`StudyError`] if a CPU's histogram cannot be decoded or does not match its count.
    pub fn of(record: &JitterRecord) -> Result<Self, StudyError> {
        let mut cells = Vec::new();
        for cpu in &record.cpus {
            if let Some(lengths) = lengths_of(cpu)? {
                cells.extend(cells_of(&lengths, cpu.interruption_ns_max));
            }
        }
        cells.sort_by(|a, b| b.length_ns.total_cmp(&a.length_ns));
        cells.dedup_by(|next, kept| {
            let is_same = next.length_ns.total_cmp(&kept.length_ns).is_eq();
            if is_same {
                kept.count += next.count;
            }
            is_same
        });
        let runtime_ns = record.cpus.iter().map(|cpu| cpu.runtime_ns as f64).sum();
        Ok(Self { cells, runtime_ns })
    }

    /// The same lengths with other counts: `draw` returns the new count of a cell from its count.
    #[must_use]
    pub fn resampled(&self, mut draw: impl FnMut(f64) -> f64) -> Self {
        let cells = self.cells.iter().map(|cell| Cell { count: draw(cell.count), ..*cell });
        Self { cells: cells.filter(|cell| cell.count > 0.0).collect(), runtime_ns: self.runtime_ns }
    }

    /// The percentile over time: how long a thread waits that wants a CPU at a random moment, in nanoseconds.
    pub fn wait_ns(&self, quantile: f64) -> f64 {
        wait_at(&self.cells, (1.0 - quantile) * self.runtime_ns).map_or(0.0, |wait| wait.ns)
    }

    /// The percentile over interruptions, in nanoseconds; `None` without interruptions.
    pub fn length_ns(&self, quantile: f64) -> Option<f64> {
        let longer_max = (1.0 - quantile) * self.cells.iter().map(|cell| cell.count).sum::<f64>();
        let mut count = 0.0;
        self.cells.iter().find_map(|cell| {
            count += cell.count;
            (count > longer_max).then_some(cell.length_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JitterCpu, study};
    use hdrhistogram::Histogram;

    fn record() -> JitterRecord {
        let cpu = |cpu, long: u64| {
            let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
            lengths.record_n(1_000, 50_000).unwrap();
            lengths.record_n(500_000, long).unwrap();
            JitterCpu {
                cpu,
                runtime_ns: 10_000_000_000,
                interruption_count: 50_000 + long,
                interruption_ns_total: 50_000_000 + 500_000 * long,
                interruption_ns_max: 500_000,
                histogram: lowlat_host::histogram::encode(&lengths),
                ..JitterCpu::default()
            }
        };
        JitterRecord { cpus: vec![cpu(1, 40), cpu(2, 80)], threshold_ns: 100, ..JitterRecord::default() }
    }

    #[test]
    fn percentiles_are_those_of_the_study() {
        let (record, cells) = (record(), LengthCells::of(&record()).unwrap());
        let all = study(&record).unwrap().all;
        assert!(all.time_percentiles.iter().any(|of| of.length_ns > 0) && !all.percentiles.is_empty());
        for of in &all.time_percentiles {
            let found = cells.wait_ns(of.quantile);
            assert!((found - of.length_ns as f64).abs() <= 1.0, "{of:?} {found}");
        }
        for of in &all.percentiles {
            // The study has the upper edge of the cell.
            let found = cells.length_ns(of.quantile).unwrap();
            assert!((found / of.length_ns as f64 - 1.0).abs() < 0.001, "{of:?} {found}");
        }
    }

    #[test]
    fn other_counts_give_other_percentiles() {
        let cells = LengthCells::of(&record()).unwrap();
        let without_long = cells.resampled(|count| if count < 1_000.0 { 0.0 } else { count });
        assert!(cells.wait_ns(0.999) > 100_000.0 && without_long.wait_ns(0.999) < 1_000.0);
        assert_eq!(cells.resampled(|_| 0.0).length_ns(0.5), None);
    }
}
