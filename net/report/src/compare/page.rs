//! Parts of a comparison on the page of a run.

use super::{doubts, headline, how, interval, name, named_sides, table, verdicts};
use crate::{
    chart::{ChartColumn, chart},
    html::{NONE, STYLE},
};
use lowlat_net::compare::{CompareRecord, CompareStudy, NetCompareMeasurement, SizeComparison};
use lowlat_text::page::{Section, columns_table, micro, note, section, tile};
use lowlat_text::units::{clean, duration_fine};
use lowlat_text::view::{View, ViewPage};
use maud::html;

/// Returns the view of a comparison of round trips.
pub fn view(record: &CompareRecord) -> View<'_> {
    let study = CompareStudy::of(record);
    View {
        kind: NetCompareMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record, &study))),
        doubts: doubts(record, &study),
        add_summary: Box::new(|out, width| out.push_str(&super::net_compare_text(record, width))),
        page: Box::new(move || {
            let sides = super::quoted(&study).into_iter().flat_map(|size| &size.sides);
            let tiles = html! {
                @for (place, side) in sides.enumerate() {
                    @let label = format!("Side {}, median", name(record, place));
                    (tile(&label, &time(side.p50_ns), &format!("p99 {}", time(side.p99_ns))))
                }
            };
            let verdict = html! {
                p class="verdict" { (micro(&clean(&headline(record, &study)))) "." }
                @for side in named_sides(record) { p { (clean(&side)) } }
                p { (micro(&clean(&how(record)))) }
                div class="tiles" { (tiles) }
            };
            ViewPage {
                title: "Comparison of round trips",
                verdict,
                tiles,
                sections: vec![body(record)],
                parameters: None,
            }
        }),
    }
}

fn body(record: &CompareRecord) -> Section {
    let study = CompareStudy::of(record);
    let lead = html! {
        "Half round trips of each side: medians over rounds, and the ratio to the first side round by round with its 95 % interval."
    };
    let verdicts = verdicts(record, &study);
    let body = html! {
        (note("Caveats", &doubts(record, &study)))
        @if let Some(size) = super::quoted(&study) {
            figure tabindex="0" class="card" {
                figcaption { h3 { "By round" } p { "Dot: median of a run of " (of(size)) ". Bar: all rounds of the side." } }
                (chart(&marks(record, size.size_bytes), None, "Medians of every round by side; the figures are in the table below"))
            }
            (columns_table("Half round trips by size and side", &table(record, &study)))
        } @else {
            p class="empty" { "Nothing was compared." }
        }
        @if !verdicts.is_empty() { ul class="sentences" { @for verdict in &verdicts { li { (clean(verdict)) } } } }
    };
    Section::new("compare", "Comparison", section("compare", "Comparison", &lead, &body)).with_style(STYLE)
}

fn of(size: &SizeComparison) -> String {
    size.size_bytes.map_or_else(|| "the only size".to_owned(), super::super::pingpong::bytes)
}

fn marks(record: &CompareRecord, size_bytes: Option<u32>) -> Vec<ChartColumn> {
    let mark = |(place, side): (usize, &lowlat_net::compare::CompareSide)| {
        let rows =
            record.runs.iter().filter(|run| usize::try_from(run.side) == Ok(place)).flat_map(|run| &run.rows);
        let medians = rows
            .filter(|row| row.size_bytes.is_none() || row.size_bytes == size_bytes)
            .filter_map(|row| row.p50_ns.or(row.mean_ns));
        let dots: Vec<f64> = medians.collect();
        let low = dots.iter().copied().reduce(f64::min);
        let high = dots.iter().copied().reduce(f64::max);
        ChartColumn {
            label: format!("{} ({})", side.name, side.tool),
            title: format!("{}: {} rounds, {} to {}", side.name, dots.len(), time(low), time(high)),
            bar: low.zip(high),
            dots,
            whole: None,
        }
    };
    record.sides.iter().enumerate().map(mark).collect()
}

pub(super) fn ratio(size: &SizeComparison, place: usize, word: &str) -> Option<String> {
    let of = size.comparisons.iter().find(|one| one.side == place)?;
    let figure = of.figures.iter().find(|figure| figure.figure.word() == word)?;
    Some(interval(&figure.ratio))
}

fn time(ns: Option<f64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration_fine(ns)))
}
