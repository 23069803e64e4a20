//! Heat map: the longest interruption of each CPU in each second.

use crate::figures::CpuFigures;
use lowlat_jitter::{JitterRecord, JitterSecond};
use lowlat_text::page::micro;
use lowlat_text::page::svg::px;
use lowlat_text::units::{count, duration, plural};
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 24.0;
const AXIS: f64 = 26.0;
/// Highest number of columns; a longer run combines several seconds in one.
const COLUMNS_MAX: usize = 120;
/// Highest number of rows; CPUs with the longest interruptions are kept.
const ROWS_MAX: usize = 256;
/// Highest number of cells with a tooltip; larger maps have one per row, to keep the page small.
const TOOLTIPS_MAX: usize = 4_000;
/// Upper ends of the colour classes in ns; the last class is open.
const EDGES: [u64; 6] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, u64::MAX];
const EDGE_WORDS: [&str; 6] =
    ["below 1 µs", "1 to 10 µs", "10 to 100 µs", "100 µs to 1 ms", "1 to 10 ms", "10 ms and more"];

/// Returns one sentence below the title.
pub fn caption(jitter: &JitterRecord) -> String {
    let bins = bins_of(jitter);
    let per_column = bins.div_ceil(COLUMNS_MAX).max(1) as u64 * seconds_per_bin(jitter);
    let what =
        if per_column == 1 { "second".to_owned() } else { format!("span of {} seconds", count(per_column)) };
    let which = match jitter.cpus.len() {
        ..=ROWS_MAX => "each CPU".to_owned(),
        _ => format!("each of the {ROWS_MAX} CPUs with the longest ones"),
    };
    format!("The longest interruption of {which} in each {what}.")
}

/// Returns the whole seconds of one entry in the record's series.
fn seconds_per_bin(jitter: &JitterRecord) -> u64 {
    (jitter.second_ns / 1_000_000_000).max(1)
}

fn bins_of(jitter: &JitterRecord) -> usize {
    jitter.cpus.iter().map(|cpu| cpu.seconds.len()).max().unwrap_or(0)
}

/// Returns one CPU over the columns: the longest interruption of each column, and their number.
fn columns_of(seconds: &[JitterSecond], per_column: usize) -> Vec<(u64, u64)> {
    let sum = |part: &[JitterSecond]| part.iter().fold(0u64, |sum, second| sum.saturating_add(second.count));
    let longest = |part: &[JitterSecond]| part.iter().map(|second| second.ns_max).max().unwrap_or(0);
    seconds.chunks(per_column.max(1)).map(|part| (longest(part), sum(part))).collect()
}

/// Returns the colour class of a length; 0 means none.
fn class_of(ns_max: u64) -> usize {
    if ns_max == 0 { 0 } else { EDGES.iter().position(|edge| ns_max < *edge).unwrap_or(EDGES.len() - 1) + 1 }
}

struct Grid {
    row: f64,
    column: f64,
    per_column: usize,
    seconds_each: u64,
    has_tooltips: bool,
}

/// Draws the map with its legend.
pub fn draw(jitter: &JitterRecord, all: &[CpuFigures<'_>]) -> Markup {
    let bins = bins_of(jitter);
    if bins == 0 {
        return html! { p class="empty" { "The record contains no series." } };
    }
    let (all, _) = crate::html::longest_of(all, ROWS_MAX);
    let per_column = bins.div_ceil(COLUMNS_MAX).max(1);
    let columns = bins.div_ceil(per_column);
    let row = match all.len() {
        0..=8 => 22.0,
        9..=32 => 16.0,
        33..=64 => 11.0,
        65..=128 => 7.0,
        _ => 5.0,
    };
    let column = ((WIDTH - LEFT - RIGHT) / columns as f64).min(40.0);
    let seconds_each = per_column as u64 * seconds_per_bin(jitter);
    let grid =
        Grid { row, column, per_column, seconds_each, has_tooltips: columns * all.len() <= TOOLTIPS_MAX };
    let height = row * all.len() as f64 + AXIS;
    html! {
        svg class="chart heat" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img" aria-label="Longest interruption by CPU and second; the lists below have the longest ones" {
            @for (at, cpu) in all.iter().enumerate() { (line(&grid, cpu, at)) }
            (time_axis(&grid, bins as u64 * seconds_per_bin(jitter), row * all.len() as f64))
        }
        ul class="legend" {
            li { span class="swatch h0" {} "none" }
            @for (class, words) in EDGE_WORDS.iter().enumerate() {
                li { span class={ "swatch h" (class + 1) } {} (words) }
            }
        }
    }
}

fn line(grid: &Grid, cpu: &CpuFigures<'_>, at: usize) -> Markup {
    let top = grid.row * at as f64;
    let gap = if grid.row >= 7.0 { 1.0 } else { 0.0 };
    let cells = columns_of(&cpu.record.seconds, grid.per_column);
    // If rows are too low for a number each, label every eighth.
    let labelled = grid.row >= 11.0 || at.is_multiple_of(8);
    let title = format!("CPU {}, {}", cpu.record.cpu, cpu.part.phrase());
    html! {
        g {
            title { (title) }
            @if labelled {
                text class="row-label" x=(px(LEFT - 16.0)) y=(px(top + grid.row / 2.0 + 4.0)) text-anchor="end" { (cpu.record.cpu) }
            }
            rect class={ "p-" (cpu.part.class()) } x=(px(LEFT - 10.0)) y=(px(top)) width="4" height=(px(grid.row - gap)) {}
            @if grid.has_tooltips {
                @for (column, (longest, count)) in cells.iter().enumerate() {
                    (cell(grid, (column, top, gap), *longest, *count, &title))
                }
            } @else {
                @for class in 0..=EDGES.len() { (cells_of_class(grid, &cells, class, top, gap)) }
            }
        }
    }
}

fn cell(grid: &Grid, (column, top, gap): (usize, f64, f64), longest: u64, count: u64, cpu: &str) -> Markup {
    let start = column as u64 * grid.seconds_each;
    let what = match count {
        0 => "no interruption".to_owned(),
        _ => format!("{}, longest {}", plural(count, "interruption"), micro(&duration(longest))),
    };
    html! {
        rect class={ "h" (class_of(longest)) } x=(px(LEFT + grid.column * column as f64)) y=(px(top))
            width=(px((grid.column - gap).max(0.5))) height=(px(grid.row - gap)) {
            title { (cpu) ", second " (start) ": " (what) }
        }
    }
}

/// Draws all cells of one colour in a row as one path.
fn cells_of_class(grid: &Grid, cells: &[(u64, u64)], class: usize, top: f64, gap: f64) -> Markup {
    let (width, height) = (px((grid.column - gap).max(0.5)), px(grid.row - gap));
    let path: String = cells
        .iter()
        .enumerate()
        .filter(|(_, (longest, _))| class_of(*longest) == class)
        .map(|(column, _)| {
            format!("M{} {}h{width}v{height}h-{width}z", px(LEFT + grid.column * column as f64), px(top))
        })
        .collect();
    html! { @if !path.is_empty() { path class={ "h" (class) } d=(path) {} } }
}

fn time_axis(grid: &Grid, seconds: u64, bottom: f64) -> Markup {
    let steps = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400, 43_200, 86_400];
    let step = steps.into_iter().find(|step| seconds / step <= 12).unwrap_or(seconds.max(1));
    let marks = (0..=seconds / step).map(|at| at * step);
    html! {
        g class="axis" {
            @for second in marks {
                @let at = LEFT + grid.column * (second as f64 / grid.seconds_each as f64);
                line class="tick" x1=(px(at)) x2=(px(at)) y1=(px(bottom + 1.0)) y2=(px(bottom + 5.0)) {}
                text x=(px(at)) y=(px(bottom + 18.0)) text-anchor="middle" { (count(second)) @if second == 0 { " s" } }
            }
            text x=(px(LEFT - 16.0)) y=(px(bottom + 18.0)) text-anchor="end" { "CPU" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_fall_into_decades() {
        let classes = [0, 1, 999, 1_000, 99_999, 9_999_999, 10_000_000, u64::MAX].map(class_of);
        assert_eq!(classes, [0, 1, 1, 2, 3, 5, 6, 6]);
    }

    #[test]
    fn long_runs_show_the_longest_of_several_seconds_in_a_column() {
        let second = |ns_max, count| JitterSecond { ns_max, count, ..JitterSecond::default() };
        let seconds = [second(5, 1), second(9, 2), second(0, 0), second(4, 1), second(1, 7)];
        assert_eq!(columns_of(&seconds, 2), [(9, 3), (4, 1), (1, 7)]);
        assert_eq!(columns_of(&seconds, 0).len(), 5);
    }
}
