//! Costs: busy CPUs, and wakes and switches per tick.

use crate::pipeline::MeasuredRow;
use crate::pipeline::html::series::{ChartSeries, Frame, Look, Point, decades, power_name};
use lowlat_text::page::section as page_section;
use lowlat_text::units::rate;
use maud::{Markup, html};

const WIDTH: f64 = 528.0;
const HEIGHT: f64 = 300.0;

/// Busy CPUs and switches, over the tick rate.
pub fn cost(groups: &[Vec<&MeasuredRow<'_>>]) -> Markup {
    let lead = html! { "Costs of all processes of a run. A spinning process keeps its CPU busy even without ticks." };
    let chart = |title: &str,
                 caption: &str,
                 y_title: &str,
                 of: &dyn Fn(&MeasuredRow<'_>) -> Option<f64>,
                 words: &dyn Fn(f64) -> String| {
        let all = series(groups, of, words);
        let Some((low, high)) = decades(all.iter().flat_map(|series| &series.points).map(|point| point.at))
        else {
            return html! { p class="empty" { "Nothing was measured." } };
        };
        html! {
            figure tabindex="0" class="card" {
                figcaption { h3 { (title) } p { (caption) } }
                (Frame::new(WIDTH, HEIGHT, low, high).draw(title, y_title, power_name, &all))
            }
        }
    };
    let body = html! {
        div class="cards two small-charts" {
            (chart("CPUs busy", "CPU time of all processes, divided by the time over which it was counted.", "CPUs", &|row| row.figures.cpus_busy, &|of| format!("{of:.3} CPUs busy")))
            (chart("Switches", "Voluntary and involuntary context switches of all processes, per tick. In slow rows, waits of idle processes count too.", "switches per tick", &|row| row.figures.switches_per_tick, &|of| format!("{} switches per tick", rate(of))))
        }
    };
    page_section("cost", "Cost", &lead, &body)
}

fn series(
    groups: &[Vec<&MeasuredRow<'_>>],
    of: &dyn Fn(&MeasuredRow<'_>) -> Option<f64>,
    words: &dyn Fn(f64) -> String,
) -> Vec<ChartSeries> {
    let point = |row: &&MeasuredRow<'_>| {
        let at = of(row).filter(|at| *at > 0.0)?;
        let (rate, title) = (row.row.parameters.rate_per_s, format!("{}: {}", row.row.id, words(at)));
        Some(Point { rate, low: at, at, high: at, is_carried: true, title })
    };
    let one = |group: &Vec<_>| ChartSeries::of(group, group.iter().filter_map(point).collect(), Look::Bars);
    groups.iter().map(one).filter(|series| !series.points.is_empty()).collect()
}
