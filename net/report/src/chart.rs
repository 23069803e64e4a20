//! Chart of times on a logarithmic scale, with a column for each thing measured.

use lowlat_text::page::micro;
use lowlat_text::page::svg::{LogScale, decade_above, decade_below, px};
use lowlat_text::units::duration;
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 44.0;

/// One column of a chart.
pub struct ChartColumn {
    /// Text below it; empty: none.
    pub label: String,
    /// Text shown while the pointer is on it.
    pub title: String,
    /// Values of the dots, in nanoseconds.
    pub dots: Vec<f64>,
    /// A bar from low to high, in nanoseconds.
    pub bar: Option<(f64, f64)>,
    /// A thin line from low to high, in nanoseconds.
    pub whole: Option<(f64, f64)>,
}

/// Draws the columns, with a line at `goal` if there is one. `said` describes the chart for those who do not see it.
pub fn chart(marks: &[ChartColumn], goal: Option<f64>, said: &str) -> Markup {
    chart_with_unit(marks, goal, said, ("", 320.0))
}

/// The same with a unit of the labels, if it is not empty, and a height.
pub fn chart_with_unit(
    marks: &[ChartColumn],
    goal: Option<f64>,
    said: &str,
    (unit, height): (&str, f64),
) -> Markup {
    let bars =
        marks.iter().flat_map(|mark| [mark.bar, mark.whole]).flatten().flat_map(|(low, high)| [low, high]);
    let values = || marks.iter().flat_map(|mark| mark.dots.iter().copied()).chain(bars.clone()).chain(goal);
    let low = values().fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    let low = decade_below(whole(low));
    let y = LogScale { low, high: decade_above(whole(high)).max(low + 1), start: height - BOTTOM, end: TOP };
    let step = (WIDTH - LEFT - RIGHT) / marks.len().max(1) as f64;
    let at = |ns: f64| px(y.at(ns.max(1.0)));
    html! {
        svg class="chart pingpong" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img" aria-label=(said) {
            g class="axis" {
                @for (power, at) in y.decades() {
                    line class="grid" x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(at)) y2=(px(at)) {}
                    text x=(px(LEFT - 8.0)) y=(px(at + 4.0)) text-anchor="end" { (time_name(power)) }
                }
                @if !unit.is_empty() {
                    text class="axis-title" x=(px(WIDTH - RIGHT)) y=(px(height - 6.0)) text-anchor="end" { (unit) }
                }
            }
            @if let Some(goal) = goal {
                line class="goal" x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(at(goal)) y2=(at(goal)) {}
                text class="size" x=(px(WIDTH - RIGHT)) y=(px(y.at(goal.max(1.0)) - 6.0)) text-anchor="end" { "goal" }
            }
            @for (place, mark) in marks.iter().enumerate() {
                @let x = px(LEFT + step * (place as f64 + 0.5));
                g class="mark" {
                    title { (mark.title) }
                    @if let Some((low, high)) = mark.whole {
                        line class="whole" x1=(x) x2=(x) y1=(at(low)) y2=(at(high)) {}
                    }
                    @if let Some((low, high)) = mark.bar {
                        line class="most" x1=(x) x2=(x) y1=(at(low)) y2=(at(high)) {}
                    }
                    @for dot in &mark.dots { circle cx=(x) cy=(at(*dot)) r="4" {} }
                }
                @if !mark.label.is_empty() {
                    text class="size" x=(x) y=(px(height - BOTTOM + 17.0)) text-anchor="middle" { (mark.label) }
                }
            }
        }
    }
}

/// Names a power of ten in nanoseconds: "100 ns", "1 µs", "10 ms".
fn time_name(power: i32) -> String {
    micro(&duration(10_u64.pow(power.clamp(0, 18).unsigned_abs())).replace(".00", "").replace(".0", ""))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
fn whole(ns: f64) -> u64 {
    if ns.is_finite() { ns.max(1.0) as u64 } else { 1 }
}
