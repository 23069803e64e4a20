//! Charts over the tick rate: both axes are logarithmic, each group has a colour.

use crate::pipeline::MeasuredRow;
use lowlat_text::page::svg::{LogScale, px};
use lowlat_text::units::{clean, count};
use maud::{Markup, html};

/// Decades of tick rates in the matrix: 0.1 to 10,000 per second.
const RATE_LOW: i32 = -1;
const RATE_HIGH: i32 = 4;
const LEFT: f64 = 62.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 44.0;
/// Space for the letters of the groups.
const RIGHT: f64 = 30.0;
/// Letters closer than this are stacked.
const LETTER: f64 = 14.0;

/// A point: a rate, a figure and its range.
#[derive(Debug, Clone)]
pub struct Point {
    /// Rate in ticks per second.
    pub rate: f64,
    /// Low end of the range.
    pub low: f64,
    /// Value through which the line passes.
    pub at: f64,
    /// High end of the range.
    pub high: f64,
    /// True if there are enough ticks for the low and high ends. If not, the point is hollow and outside of the band.
    pub is_carried: bool,
    /// Text shown when hovering over it.
    pub title: String,
}

/// Points joined by a line.
#[derive(Debug, Clone)]
pub struct ChartSeries {
    pub letter: char,
    /// Points in order of rate.
    pub points: Vec<Point>,
    pub look: Look,
}

impl ChartSeries {
    /// The series of a group's rows.
    pub fn of(group: &[&MeasuredRow<'_>], mut points: Vec<Point>, look: Look) -> Self {
        points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        Self { letter: group.first().map_or('A', |row| row.row.group), points, look }
    }
}

/// Way in which a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A line with a bar from the low to the high end at each point.
    Bars,
    /// A line with a band.
    Band,
    /// A thin dashed line with a band: figures of another machine.
    Reference,
}

/// The frame of a chart.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    x: LogScale,
    y: LogScale,
    width: f64,
    height: f64,
    /// Offset between series at one rate, so that their bars do not overlap.
    beside: f64,
}

impl Frame {
    /// A frame for values between two powers of ten.
    pub fn new(width: f64, height: f64, low: i32, high: i32) -> Self {
        let x = LogScale { low: RATE_LOW, high: RATE_HIGH, start: LEFT, end: width - RIGHT };
        let y = LogScale { low, high: high.max(low + 1), start: height - BOTTOM, end: TOP };
        Self { x, y, width, height, beside: 0.0 }
    }

    /// The same frame, with series offset on both sides of their rate.
    pub fn side_by_side(self, beside: f64) -> Self {
        Self { beside, ..self }
    }

    /// The same frame for rates from this power of ten on.
    pub fn beginning_at(self, power: i32) -> Self {
        let low = power.clamp(RATE_LOW, RATE_HIGH - 1);
        Self { x: LogScale { low, ..self.x }, ..self }
    }

    /// The same frame, wide enough for every rate: a scenario from a file may have any.
    fn covering(&self, all: &[ChartSeries]) -> Self {
        let rates = all.iter().flat_map(|series| &series.points).map(|point| point.rate);
        let Some((low, high)) = decades(rates) else { return *self };
        let x = LogScale { low: self.x.low.min(low), high: self.x.high.max(high), ..self.x };
        Self { x, ..*self }
    }

    pub fn draw(&self, label: &str, y_title: &str, name: fn(i32) -> String, all: &[ChartSeries]) -> Markup {
        let frame = self.covering(all);
        html! {
            svg class="chart rates" viewBox={ "0 0 " (px(self.width)) " " (px(self.height)) } role="img" aria-label=(label) {
                (frame.axes(y_title, name))
                @for (at, series) in all.iter().enumerate().filter(|(_, series)| series.look == Look::Reference) { (frame.series(series, frame.shift(at, all.len()))) }
                @for (at, series) in all.iter().enumerate().filter(|(_, series)| series.look != Look::Reference) { (frame.series(series, frame.shift(at, all.len()))) }
                (frame.letters(all))
            }
        }
    }

    fn axes(&self, y_title: &str, name: fn(i32) -> String) -> Markup {
        let (x, y) = (&self.x, &self.y);
        html! {
            g class="axis" {
                @for (power, at) in y.decades() {
                    line class="grid" x1=(px(x.start)) x2=(px(x.end)) y1=(px(at)) y2=(px(at)) {}
                    text x=(px(x.start - 8.0)) y=(px(at + 4.0)) text-anchor="end" { (name(power)) }
                }
                @for (power, at) in x.decades() {
                    line class="grid" x1=(px(at)) x2=(px(at)) y1=(px(y.end)) y2=(px(y.start)) {}
                    text x=(px(at)) y=(px(y.start + 17.0)) text-anchor="middle" { (power_name(power)) }
                }
                line class="tick" x1=(px(x.start)) x2=(px(x.end)) y1=(px(y.start)) y2=(px(y.start)) {}
                text class="axis-title" x=(px(x.end)) y=(px(self.height - 6.0)) text-anchor="end" { "ticks per second, all instruments" }
                text class="axis-title" x=(px(8.0)) y="16" text-anchor="start" { (y_title) }
            }
        }
    }

    /// The offset of one of `n` series.
    fn shift(&self, at: usize, of: usize) -> f64 {
        self.beside * (at as f64 - (of.saturating_sub(1)) as f64 / 2.0)
    }

    fn series(&self, series: &ChartSeries, shift: f64) -> Markup {
        let at = |point: &Point, value: f64| (self.x.at(point.rate) + shift, self.y.at(value));
        let class = format!("g-{}", series.letter.to_ascii_lowercase());
        html! {
            g class={ "series " (class) @if series.look == Look::Reference { " reference" } } {
                @if series.look != Look::Bars { path class="band" d=(self.band(series)) {} }
                path class="line" d=(self.line(series, shift)) {}
                @for point in &series.points {
                    @let (x, y) = at(point, point.at);
                    @let (low, high) = (at(point, point.low).1, at(point, point.high).1);
                    g class="point" {
                        @if series.look == Look::Bars { line class="bar-range" x1=(px(x)) x2=(px(x)) y1=(px(low)) y2=(px(high)) {} }
                        @if series.look != Look::Reference {
                            circle class=[(!point.is_carried).then_some("hollow")] cx=(px(x)) cy=(px(y)) r="3.4" {}
                        }
                        // Larger than the mark, so that it is easy to hover.
                        circle class="hit" cx=(px(x)) cy=(px(y)) r="9" { title { (point.title) } }
                    }
                }
            }
        }
    }

    fn line(&self, series: &ChartSeries, shift: f64) -> String {
        self.path(series.points.iter().map(|point| (point.rate, point.at)), shift)
    }

    /// Joins points of a rate and a value by lines.
    fn path(&self, points: impl Iterator<Item = (f64, f64)>, shift: f64) -> String {
        let step = |(at, (rate, value))| {
            let step = if at == 0 { 'M' } else { 'L' };
            format!("{step}{} {}", px(self.x.at(rate) + shift), px(self.y.at(value)))
        };
        points.enumerate().map(step).collect()
    }

    /// The area between low and high ends, over each stretch of points that have both.
    fn band(&self, series: &ChartSeries) -> String {
        let stretches = series.points.split(|point| !point.is_carried).filter(|stretch| stretch.len() > 1);
        let area = |stretch: &[Point]| {
            let ends = stretch.iter().map(|point| (point.rate, point.high));
            let back = stretch.iter().rev().map(|point| (point.rate, point.low));
            format!("{}z", self.path(ends.chain(back), 0.0))
        };
        stretches.map(area).collect()
    }

    /// The letter of each group where its line ends, moved apart.
    fn letters(&self, all: &[ChartSeries]) -> Markup {
        let mut ends: Vec<(char, f64, f64)> = all
            .iter()
            .enumerate()
            .filter(|(_, series)| series.look != Look::Reference)
            .filter_map(|(at, series)| {
                let last = series.points.last()?;
                // All in one column, right of the last bar.
                let beside =
                    self.shift(all.len().saturating_sub(1), all.len()).max(self.shift(at, all.len()));
                Some((series.letter, self.x.at(last.rate) + beside, self.y.at(last.at)))
            })
            .collect();
        ends.sort_by(|a, b| a.2.total_cmp(&b.2));
        for at in 1..ends.len() {
            let above = ends[at - 1].2;
            ends[at].2 = ends[at].2.max(above + LETTER);
        }
        // Letters pushed below the axis are moved up again.
        let mut floor = self.y.start;
        for end in ends.iter_mut().rev() {
            end.2 = end.2.min(floor);
            floor = end.2 - LETTER;
        }
        html! {
            @for (letter, x, y) in ends {
                text class={ "letter g-" (letter.to_ascii_lowercase()) } x=(px(x + 11.0)) y=(px(y + 4.0)) { (letter) }
            }
        }
    }
}

/// Formats a power of ten as "0.001", "1" or "100".
pub fn power_name(power: i32) -> String {
    match power {
        ..0 => format!("{:.*}", usize::try_from(-power).unwrap_or(1), 10_f64.powi(power)),
        _ => count(10_u64.pow(power.unsigned_abs().min(18))),
    }
}

/// The decades that cover all values; `None` if there are no values.
#[allow(clippy::cast_possible_truncation, reason = "logarithms of finite values are small")]
pub fn decades(values: impl Iterator<Item = f64>) -> Option<(i32, i32)> {
    let all = values.filter(|value| value.is_finite() && *value > 0.0).map(f64::log10);
    let (low, high) =
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), of| (low.min(of), high.max(of)));
    (low <= high).then(|| (low.floor() as i32, high.ceil() as i32))
}

/// Legend: the groups of a chart with their colours.
pub fn legend<'a>(groups: impl Iterator<Item = (char, &'a str)>) -> Markup {
    html! {
        ul class="legend" {
            @for (letter, name) in groups {
                li { span class={ "line-swatch g-" (letter.to_ascii_lowercase()) } {} b { (letter) } " " (clean(name)) }
            }
        }
    }
}
