//! Latency over the tick rate.

use crate::pipeline::html::series::{ChartSeries, Frame, Look, Point, decades, legend};
use crate::pipeline::{MeasuredRow, bounds, terminal::range};
use lowlat_text::page::{micro, section as page_section};
use lowlat_text::units::{clean, count, duration};
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 400.0;
/// Distance between the bars of two groups at one rate.
const BESIDE: f64 = 5.0;
const SMALL_WIDTH: f64 = 528.0;
const SMALL_HEIGHT: f64 = 290.0;

type Group<'r, 'a> = Vec<&'r MeasuredRow<'a>>;

/// The means of each group that has some.
fn all_means(groups: &[Group<'_, '_>]) -> Vec<ChartSeries> {
    groups.iter().map(of_means).filter(|series| !series.points.is_empty()).collect()
}

/// One chart of all means, and one chart of percentiles per group.
pub fn section(groups: &[Group<'_, '_>]) -> Markup {
    let lead = html! { "From the write of a quote by md to the read of its order by td, over the rate of quotes. Both axes are logarithmic; lower is faster." };
    let means = all_means(groups);
    let measured: Vec<&Group<'_, '_>> =
        groups.iter().filter(|group| group.iter().any(|row| row.figures.runs > 0)).collect();
    // All charts share one scale, so that groups can be compared.
    let parts: Vec<ChartSeries> =
        measured.iter().flat_map(|group| [of_percentiles(group), of_reference(group)]).collect();
    let span = span_of(&parts);
    let has_reference = measured.iter().any(|group| !of_reference(group).points.is_empty());
    let body = html! {
        @if means.is_empty() {
            p class="empty" { "No row was measured." }
        } @else {
            (means_chart(&means, &measured))
            p class="small small-charts-lead" {
                "One chart per group, all on one scale. Line: p50; band: p50 to p99. Hollow: too few ticks for a p99; the mean where there are also "
                "too few for a p50."
                @if has_reference { " Dashed: range of means in the report, from another machine." }
            }
            div class="cards two small-charts" { @for group in &measured { (percentiles(group, span)) } }
        }
    };
    page_section("latency", "Latency", &lead, &body)
}

fn means_chart(means: &[ChartSeries], measured: &[&Group<'_, '_>]) -> Markup {
    let (low, high) = span_of(means);
    let frame = Frame::new(WIDTH, HEIGHT, low, high).side_by_side(BESIDE);
    html! {
        figure tabindex="0" class="card" {
            figcaption {
                h3 { "Means" }
                p { "Tick to order: bars reach from the lowest to the highest mean of a run, as in the report. Groups are drawn side by side at each rate." }
            }
            (frame.draw("Mean tick to order over the rate, one line per group; the figures are in the tables below", "tick to order", time_name, means))
            (legend(measured.iter().filter_map(|group| group.first()).map(|row| (row.row.group, row.row.group_name.as_str()))))
        }
    }
}

/// The means of a finding's groups, with their names below.
pub fn finding_chart(title: &str, groups: &[Group<'_, '_>], names: &[(char, String)]) -> Markup {
    let means = all_means(groups);
    let (low, high) = span_of(&means);
    let rates = decades(means.iter().flat_map(|series| &series.points).map(|point| point.rate));
    let frame = Frame::new(SMALL_WIDTH, SMALL_HEIGHT, low, high).side_by_side(BESIDE);
    let frame = rates.map_or(frame, |(slowest, _)| frame.beginning_at(slowest));
    let label = format!(
        "{title}: mean tick to order over the rate, one line per group; the figures are in the table below"
    );
    html! {
        figure tabindex="0" class="card" {
            figcaption { h3 { "Means" } p { "Tick to order, from the lowest to the highest mean of a run." } }
            (frame.draw(&label, "tick to order", time_name, &means))
            (legend(names.iter().map(|(letter, name)| (*letter, name.as_str()))))
        }
    }
}

fn percentiles(group: &Group<'_, '_>, (low, high): (i32, i32)) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    let measured = of_percentiles(group);
    let reference = of_reference(group);
    let all: Vec<ChartSeries> =
        [reference, measured].into_iter().filter(|series| !series.points.is_empty()).collect();
    let frame = Frame::new(SMALL_WIDTH, SMALL_HEIGHT, low, high);
    let label = format!("Group {}: tick to order over the rate, p50 to p99", first.row.group);
    html! {
        figure tabindex="0" class="card" {
            figcaption {
                h3 { (first.row.group) ": " (clean(&first.row.group_name)) }
            }
            (frame.draw(&label, "tick to order", time_name, &all))
        }
    }
}

/// The decades that cover every point.
fn span_of(all: &[ChartSeries]) -> (i32, i32) {
    let values = all.iter().flat_map(|series| &series.points).flat_map(|point| [point.low, point.high]);
    decades(values).unwrap_or((3, 6))
}

fn of_means(group: &Group<'_, '_>) -> ChartSeries {
    let points = group.iter().filter_map(|row| {
        let means = row.figures.t2o.means_ns?;
        let of = format!("in {} runs, {} ticks", row.figures.runs, count(row.figures.ticks));
        Some(mean(row, means, |range| format!(": mean {range} {of}")))
    });
    ChartSeries::of(group, points.collect(), Look::Bars)
}

/// The range of the means of a row, with the line through its geometric middle.
fn mean(row: &MeasuredRow<'_>, (low, high): (f64, f64), words: impl Fn(&str) -> String) -> Point {
    let title = format!("{}{}", row.row.id, words(&micro(&range(Some((low, high))))));
    Point { rate: row.row.parameters.rate_per_s, low, at: (low * high).sqrt(), high, is_carried: true, title }
}

fn of_percentiles(group: &Group<'_, '_>) -> ChartSeries {
    let points = group.iter().filter_map(|row| {
        let (low, high) = row.figures.t2o.means_ns?;
        let pooled = &row.figures.t2o.pooled;
        // A row with few ticks has means only; their range takes the place of the percentiles.
        let p50 = pooled.p50_ns.map_or((low * high).sqrt(), |ns| ns as f64);
        let p99 = pooled.p99_ns.map_or(high.max(p50), |ns| ns as f64);
        let said = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| micro(&duration(ns)));
        Some(Point {
            rate: row.row.parameters.rate_per_s,
            low: p50,
            at: p50,
            high: p99,
            is_carried: pooled.p50_ns.is_some() && pooled.p99_ns.is_some(),
            title: format!(
                "{}: p50 {}, p99 {}, p99.9 {}, max {}",
                row.row.id,
                said(pooled.p50_ns),
                said(pooled.p99_ns),
                said(pooled.p99_9_ns),
                said(pooled.max_ns)
            ),
        })
    });
    ChartSeries::of(group, points.collect(), Look::Band)
}

fn of_reference(group: &Group<'_, '_>) -> ChartSeries {
    let words = |range: &str| format!(" in the report, on another machine: mean {range}");
    let points = group.iter().filter_map(|row| Some(mean(row, bounds(row.reference?.t2o), words)));
    ChartSeries::of(group, points.collect(), Look::Reference)
}

/// "100 ns", "1 µs", "10 ms", "1 s".
fn time_name(power: i32) -> String {
    let (unit, base) = match power {
        ..3 => ("ns", 0),
        3..6 => ("µs", 3),
        6..9 => ("ms", 6),
        _ => ("s", 9),
    };
    format!("{} {unit}", count(10_u64.pow((power - base).max(0).unsigned_abs().min(18))))
}
