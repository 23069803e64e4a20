//! sfnt-pingpong: whole nanoseconds, half round trips unless the header says otherwise.

use super::{ToolOutput, ToolRow};
use crate::sfnt;

/// Parses every run of the text.
pub fn parse(text: &str) -> Result<ToolOutput, String> {
    let logs = sfnt::parse(text).map_err(|error| format!("cannot be read: {error}"))?;
    let mut output = ToolOutput::default();
    for log in &logs {
        output.warnings.extend(log.left_out());
        let part = if log.is_round_trip() { 0.5 } else { 1.0 };
        let is_p99 = log.percentile().is_none_or(|percentile| (percentile - 99.0).abs() < 1e-9);
        if !is_p99 {
            output.warnings.push("The column %ile is not the 99th percentile.".to_owned());
        }
        output.rows.extend(log.rows.iter().map(|row| {
            let ns = |ns: u64| Some(ns as f64 * part);
            ToolRow {
                size_bytes: Some(row.size_bytes),
                count: Some(row.figures.iterations),
                mean_ns: ns(row.figures.mean_ns),
                p50_ns: ns(row.figures.median_ns),
                p99_ns: ns(row.figures.percentile_ns).filter(|_| is_p99),
                mean_step_ns: part,
                quantile_step_ns: part,
                ..ToolRow::default()
            }
        }));
    }
    Ok(output)
}
