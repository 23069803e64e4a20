//! Figures of workloads as text.

use crate::words::{add_notes, bytes, cpus, how, interval, named, per_second, time};
use lowlat_text::columns::{self, Column, NONE};
use lowlat_text::text::{add_detail, add_result, usable};
use lowlat_text::units::clean;
use lowlat_workload::WorkloadRecord;

/// Formats figures: the fastest row of each workload, then all rows.
pub fn text(record: &WorkloadRecord, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    add_detail(&mut out, &how(record), width);
    let rows = measured(record);
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&columns::table(columns_of(record, &rows), width));
    }
    add_notes(&mut out, record, width);
    out
}

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

fn columns_of(record: &WorkloadRecord, rows: &[usize]) -> Vec<Column> {
    let cell = |place: &usize| record.cells.get(*place);
    let of = |text: &dyn Fn(usize) -> Option<String>| -> Vec<String> {
        rows.iter().map(|place| text(*place).unwrap_or_else(|| NONE.to_owned())).collect()
    };
    vec![
        Column::words("workload", 0, of(&|place| Some(clean(&cell(&place)?.workload)))),
        Column::figures("copies", 0, of(&|place| Some(cell(&place)?.copies.to_string()))),
        Column::words("setting", 0, of(&|place| Some(cell(&place)?.setting.to_string()))),
        Column::figures("per second", 0, of(&|place| Some(per_second(record.rate(place)?.median)))),
        Column::figures("95 % interval", 1, of(&|place| Some(interval(&record.rate(place)?, per_second)))),
        Column::figures("p50", 1, of(&|place| Some(time(record.latency_ns(place)?[0])))),
        Column::figures("p99", 1, of(&|place| Some(time(record.latency_ns(place)?[1])))),
        Column::figures("transfer/s", 1, of(&|place| Some(bytes(record.bytes(place)?.median)))),
        Column::words("counted", 2, of(&|place| Some(clean(&cell(&place)?.unit)))),
        Column::words("CPUs", 3, of(&|place| Some(cpus(cell(&place)?)))),
    ]
}
