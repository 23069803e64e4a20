//! Figures of workloads as text.

use crate::workload::words::{bytes, cpus, interval, named, per_second, time};
use lowlat_text::columns::{Column, Table};
use lowlat_text::units::clean;
use lowlat_workload::WorkloadRecord;

/// Cells with at least one run.
pub fn measured(record: &WorkloadRecord) -> Vec<usize> {
    (0..record.cells.len()).filter(|cell| record.rate(*cell).is_some()).collect()
}

/// "pipe, 1 copy: 43,112 round trips/s".
pub fn headline(record: &WorkloadRecord) -> String {
    let rows = measured(record);
    match rows.as_slice() {
        [] => "Nothing was measured".to_owned(),
        [only] => sentence(record, *only),
        more => format!("{} settings of workloads measured", more.len()),
    }
}

/// A row in one sentence.
pub fn sentence(record: &WorkloadRecord, place: usize) -> String {
    let (Some(cell), Some(rate)) = (record.cells.get(place), record.rate(place)) else {
        return String::new();
    };
    let rate = per_second(rate.median);
    clean(&format!("{}: {rate} {}/s ({})", named(&cell.workload, cell.copies), cell.unit, cell.setting))
}

/// All rows as a table.
pub fn table(record: &WorkloadRecord) -> Vec<Column> {
    let rows = measured(record);
    let cell = |place: &usize| record.cells.get(*place);
    let rate = |place: &usize| record.rate(*place);
    let latency = |at: usize| move |place: &usize| Some(time(record.latency_ns(*place)?[at]));
    Table::of(&rows)
        .words("workload", 0, |place| Some(clean(&cell(place)?.workload)))
        .figures("copies", 0, |place| Some(cell(place)?.copies.to_string()))
        .words("setting", 0, |place| Some(cell(place)?.setting.to_string()))
        .figures("per second", 0, |place| Some(per_second(rate(place)?.median)))
        .figures("95 % interval", 1, |place| Some(interval(&rate(place)?, per_second)))
        .figures("p50", 1, latency(0))
        .figures("p99", 1, latency(1))
        .figures("transfer/s", 1, |place| Some(bytes(record.bytes(*place)?.median)))
        .words("counted", 2, |place| Some(clean(&cell(place)?.unit)))
        .words("CPUs", 3, |place| cell(place).map(cpus))
        .figures("rounds", 4, |place| Some(rate(place)?.rounds.to_string()))
        .into_columns()
}
