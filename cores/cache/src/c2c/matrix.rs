//! Latencies that another program measured, as a matrix.

use super::{
    record::C2cRecord,
    survey::{Missed, Sample, SurveyLimits, survey},
};
use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet, topology::Topology};
use thiserror::Error;

/// Most rows: those of all CPUs that a host can have.
const ROWS_MAX: usize = CPU_ID_MAX as usize + 1;

/// Error for a text that is not a matrix of latencies.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LatencyMatrixError {
    /// A cell is not a time.
    /// - `line`: line number, counted from 1.
    /// - `column`: column number, counted from 1.
    #[error("line {line}, column {column}: found {found:?}, expected a time in ns, or nothing")]
    Cell { line: usize, column: usize, found: String },
    /// The matrix is not square.
    /// - `line`: line number, counted from 1.
    /// - `found`: number of columns in the line.
    /// - `expected`: number of lines in the matrix.
    #[error("line {line} has {found} columns, expected {expected}, as many as there are lines")]
    Columns { line: usize, found: usize, expected: usize },
    /// The matrix has no pair of CPUs.
    #[error("it has no time between two CPUs")]
    Empty,
    /// It has more lines than a host has CPUs.
    #[error("it has more than {ROWS_MAX} lines")]
    Large,
}

/// Times between CPUs in nanoseconds, in one direction or both: row and column are the numbers of the CPUs.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyMatrix(Vec<Vec<Option<f64>>>);

impl LatencyMatrix {
    /// Reads what `core-to-core-latency --csv` prints: a square of times, with nothing on and above the diagonal.
    ///
    /// # Errors
    /// [`LatencyMatrixError`], with the place.
    pub fn parse(text: &str) -> Result<Self, LatencyMatrixError> {
        let lines: Vec<&str> = text.trim_end_matches(['\n', '\r']).lines().collect();
        if lines.len() > ROWS_MAX {
            return Err(LatencyMatrixError::Large);
        }
        let cell = |line: usize, (column, cell): (usize, &str)| match cell.trim() {
            "" => Ok(None),
            text => match text.parse::<f64>() {
                Ok(ns) if ns.is_finite() && ns > 0.0 => Ok(Some(ns)),
                _ => Err(LatencyMatrixError::Cell {
                    line: line + 1,
                    column: column + 1,
                    found: text.chars().take(20).collect(),
                }),
            },
        };
        let mut rows = Vec::with_capacity(lines.len());
        for (line, text) in lines.iter().enumerate() {
            let row: Vec<Option<f64>> =
                text.split(',').enumerate().map(|at| cell(line, at)).collect::<Result<_, _>>()?;
            if row.len() != lines.len() {
                return Err(LatencyMatrixError::Columns {
                    line: line + 1,
                    found: row.len(),
                    expected: lines.len(),
                });
            }
            rows.push(row);
        }
        let matrix = Self(rows);
        let cpus = 0..matrix.0.len();
        let has_pair = cpus.clone().any(|a| cpus.clone().any(|b| a != b && matrix.cell(a, b).is_some()));
        if has_pair { Ok(matrix) } else { Err(LatencyMatrixError::Empty) }
    }

    fn cell(&self, row: usize, column: usize) -> Option<f64> {
        *self.0.get(row)?.get(column)?
    }

    /// Groups the CPUs by their times. Where both directions have one, their mean counts.
    pub fn survey(&self, topology: &Topology) -> C2cRecord {
        let time = |a: CpuId, b: CpuId| {
            let cell = |a: CpuId, b: CpuId| self.cell(usize::try_from(a).ok()?, usize::try_from(b).ok()?);
            match (cell(a, b), cell(b, a)) {
                (Some(there), Some(back)) => Ok(Sample {
                    median_ns: there.midpoint(back),
                    low_ns: there.min(back),
                    high_ns: there.max(back),
                }),
                (Some(ns), None) | (None, Some(ns)) => Ok(Sample { median_ns: ns, low_ns: ns, high_ns: ns }),
                (None, None) => Err(Missed::Pair),
            }
        };
        let cpus: CpuSet = (0..).take(self.0.len()).collect();
        let limits = SurveyLimits { cpus_max_of_all_pairs: usize::MAX, ..SurveyLimits::default() };
        let mut record = survey(&cpus, topology, limits, &mut |a, b| time(a, b));
        // One pair's time was asked for again, and did not change.
        record.drift = None;
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups of four, 20 ns within and 90 ns between.
    fn published() -> String {
        let cell = |row: usize, column: usize| match row.cmp(&column) {
            std::cmp::Ordering::Greater if row / 4 == column / 4 => format!("{}.{row}", 20 + column % 2),
            std::cmp::Ordering::Greater => format!("9{}.5", column % 4),
            _ => String::new(),
        };
        let line = |row| (0..8).map(|column| cell(row, column)).collect::<Vec<_>>().join(",") + "\n";
        (0..8).map(line).collect()
    }

    #[test]
    fn groups_are_found_in_a_published_matrix() {
        let record = LatencyMatrix::parse(&published()).unwrap().survey(&Topology::default());
        assert_eq!((record.pairs.len(), record.levels.len(), record.drift), (28, 2, None));
        let groups: Vec<String> = record.levels[0].groups.iter().map(CpuSet::to_list).collect();
        assert_eq!(groups, ["0-3", "4-7"]);
        assert_eq!(record.warnings, [""; 0]);
        // The same with both directions, and lines that end as on Windows.
        let full = "0,30.0,90\r\n10,,80.0\r\n90,80,\r\n".replace("0,30.0", ",30.0");
        let record = LatencyMatrix::parse(&full).unwrap().survey(&Topology::default());
        assert!(
            (record.pairs[0].median_ns - 20.0).abs() < 1e-9 && record.pairs[0].high_ns > 29.0,
            "{record:?}"
        );
    }

    #[test]
    fn what_is_no_matrix_is_refused_with_the_place() {
        for (text, wanted) in [
            ("", "no time between"),
            (",,\n,,\n,,\n", "no time between"),
            ("5.0\n", "no time between"),
            (",\n1.0\n", "line 2 has 1 columns, expected 2"),
            (",\n-1.0,\n", "line 2, column 1: found \"-1.0\""),
            (",\nNaN,\n", "found \"NaN\""),
            ("Using RDTSC to measure time: false\n", "found \"Using RDTSC to measu\""),
        ] {
            let error = LatencyMatrix::parse(text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        assert_eq!(LatencyMatrix::parse(&"\n".repeat(10_000)), Err(LatencyMatrixError::Empty));
        assert_eq!(LatencyMatrix::parse(&"1\n".repeat(10_000)), Err(LatencyMatrixError::Large));
    }
}
