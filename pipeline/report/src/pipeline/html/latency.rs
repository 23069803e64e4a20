//! Latency over the tick rate.

use crate::pipeline::html::series::{ChartSeries, Frame, Look, Point, decades, legend};
use crate::pipeline::{MeasuredRow, bounds};
use lowlat_text::page::{micro, section as page_section};
use lowlat_text::units::{count, duration};
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 400.0;
/// Distance between the bars of two groups at one rate.
const BESIDE: f64 = 5.0;
const SMALL_WIDTH: f64 = 528.0;
const SMALL_HEIGHT: f64 = 290.0;

type Group<'r, 'a> = Vec<&'r MeasuredRow<'a>>;

/// One chart of all means, and one chart of percentiles per group.
pub fn section(groups: &[Group<'_, '_>]) -> Markup {
    let lead = html! { "From the write of a quote by md to the read of its order by td, over the rate of quotes. Both axes are logarithmic; lower is faster." };
    let means: Vec<ChartSeries> =
        groups.iter().map(|group| of_means(group)).filter(|series| !series.points.is_empty()).collect();
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
            (legend(measured.iter().filter_map(|group| group.first()).map(|row| (row.row.group, row.row.group_name.as_str())), false))
        }
    }
}

/// The means of a finding's groups, with their names below.
pub fn finding_chart(title: &str, groups: &[Group<'_, '_>], names: &[(char, String)]) -> Markup {
    let means: Vec<ChartSeries> =
        groups.iter().map(|group| of_means(group)).filter(|series| !series.points.is_empty()).collect();
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
            (legend(names.iter().map(|(letter, name)| (*letter, name.as_str())), false))
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
                h3 { (first.row.group) ": " (lowlat_text::units::clean(&first.row.group_name)) }
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
        let (low, high) = row.figures.t2o.means_ns?;
        let range = crate::pipeline::terminal::range(Some((low, high)));
        Some(mean(
            row,
            (low, high),
            format!(
                "{}: mean {} in {} runs, {} ticks",
                row.row.id,
                micro(&range),
                row.figures.runs,
                count(row.figures.ticks)
            ),
        ))
    });
    series(group, points.collect(), Look::Bars)
}

/// The range of the means of a row, with the line through its geometric middle.
fn mean(row: &MeasuredRow<'_>, (low, high): (f64, f64), title: String) -> Point {
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
    series(group, points.collect(), Look::Band)
}

fn of_reference(group: &Group<'_, '_>) -> ChartSeries {
    let points = group.iter().filter_map(|row| {
        let (low, high) = bounds(row.reference?.t2o);
        Some(mean(
            row,
            (low, high),
            format!(
                "{} in the report, on another machine: mean {}",
                row.row.id,
                micro(&crate::pipeline::terminal::range(Some((low, high))))
            ),
        ))
    });
    series(group, points.collect(), Look::Reference)
}

fn series(group: &Group<'_, '_>, mut points: Vec<Point>, look: Look) -> ChartSeries {
    points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    ChartSeries { letter: group.first().map_or('A', |row| row.row.group), points, look }
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
