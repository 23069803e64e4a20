//! Parts shared by the views of the matrix.

pub mod findings;
pub mod html;
pub mod terminal;

use lowlat_pipeline::{
    MatrixDocument, MatrixRow, RowFigures,
    matrix::finding_of,
    reference::{MeanRange, ReferenceRow, reference},
};
use lowlat_text::units::count;

/// A row with its figures.
pub struct MeasuredRow<'a> {
    pub row: &'a MatrixRow,
    /// Figures derived from its runs.
    pub figures: RowFigures,
    /// The row in the report.
    pub reference: Option<&'static ReferenceRow>,
}

impl<'a> MeasuredRow<'a> {
    /// All rows of a document.
    pub fn all(document: &'a MatrixDocument) -> Vec<Self> {
        let measured =
            |row: &'a MatrixRow| Self { row, figures: RowFigures::of(row), reference: reference(&row.id) };
        document.rows.iter().map(measured).collect()
    }
}

/// A range of the report in nanoseconds, as measured ranges are.
pub fn bounds([low, high]: MeanRange) -> (f64, f64) {
    ((low * 10) as f64, (high * 10) as f64)
}

/// Rows of the tables by group, in the order of the document's groups; those of findings are in
/// [`findings::MeasuredFinding`].
pub fn groups<'r, 'a>(rows: &'r [MeasuredRow<'a>]) -> Vec<Vec<&'r MeasuredRow<'a>>> {
    let mut groups: Vec<Vec<&MeasuredRow<'a>>> = Vec::new();
    for row in rows.iter().filter(|row| finding_of(row.row.group).is_none()) {
        match groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|first| first.row.group == row.row.group))
        {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

/// Rows that did not run, by reason: "B1-B12" and "no huge pages are reserved".
pub fn not_run(rows: &[MeasuredRow<'_>]) -> Vec<(String, String)> {
    let mut reasons: Vec<(Vec<&MatrixRow>, String)> = Vec::new();
    for row in rows.iter().filter(|row| row.figures.runs == 0) {
        let why = row.row.not_run.clone().unwrap_or_else(|| "the matrix ended before it".to_owned());
        match reasons.iter_mut().find(|(_, known)| *known == why) {
            Some((ids, _)) => ids.push(row.row),
            None => reasons.push((vec![row.row], why)),
        }
    }
    reasons.into_iter().map(|(rows, why)| (ids(&rows), why)).collect()
}

/// Names of rows such as "A1-A3, B4".
fn ids(rows: &[&MatrixRow]) -> String {
    let mut spans: Vec<(&MatrixRow, &MatrixRow)> = Vec::new();
    for row in rows {
        match spans.last_mut() {
            Some((_, last))
                if last.group == row.group && last.scenario.checked_add(1) == Some(row.scenario) =>
            {
                *last = row;
            }
            _ => spans.push((row, row)),
        }
    }
    let shown = spans.iter().map(|(first, last)| match last.scenario - first.scenario {
        0 => first.id.clone(),
        1 => format!("{}, {}", first.id, last.id),
        _ => format!("{}-{}", first.id, last.id),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The warnings of a matrix, with those that follow from its rows: a document contains the latter once it is complete.
pub fn matrix_warnings(document: &MatrixDocument) -> Vec<String> {
    let of_rows = failures_text(&MeasuredRow::all(document));
    let new = of_rows.into_iter().filter(|warning| !document.warnings.contains(warning));
    document.warnings.iter().cloned().chain(new).collect()
}

/// Sentences about losses, missed wakes and late schedules, if any.
fn failures_text(rows: &[MeasuredRow<'_>]) -> Vec<String> {
    let named = |is_named: fn(&RowFigures) -> bool| {
        let ids = rows.iter().filter(|row| is_named(&row.figures)).map(|row| row.row.id.as_str());
        Some(ids.collect::<Vec<_>>().join(", ")).filter(|ids| !ids.is_empty())
    };
    let total = count(rows.iter().map(|row| row.figures.failures).sum());
    let failed = named(|of| of.failures > 0);
    let late = named(|of| of.late_runs > 0);
    let single = named(|of| of.runs == 1);
    [
        failed.map(|ids| format!("{total} records were lost or wakes missed, in {ids}.")),
        late.map(|ids| {
            format!("md fell behind its schedule in {ids}: the host cannot keep up with the rate.")
        }),
        single.map(|ids| format!("Only one run of {ids}: no range of means.")),
    ]
    .into_iter()
    .flatten()
    .collect()
}
