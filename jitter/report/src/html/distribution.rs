//! Distribution chart: the number of interruptions of at least each length, on logarithmic axes, with a line per CPU.

use crate::figures::CpuFigures;
use lowlat_host_report::cpu_parts::CpuPart;
use lowlat_jitter::JitterRecord;
use lowlat_text::page::micro;
use lowlat_text::page::svg::{LogScale, decade_above, decade_below, px};
use lowlat_text::units::{count, duration};
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 46.0;
/// Bottom of the chart, where lines end: no interruption is that long.
const BASE: f64 = HEIGHT - BOTTOM;
/// Height of the step from one interruption to none, which a logarithmic axis cannot show.
const LAST_STEP: f64 = 26.0;
/// Highest number of lines; CPUs with the longest interruptions are kept.
const LINES_MAX: usize = 128;
/// Distance below which labels are stacked.
const LABEL_WIDTH: f64 = 150.0;

/// Returns one sentence below the title.
pub fn caption(cpu_count: usize) -> String {
    let longest = format!("one line for each of the {LINES_MAX} CPUs with the longest");
    let which = if cpu_count > LINES_MAX { longest.as_str() } else { "one line per CPU" };
    format!(
        "Interruptions of at least this length, {which}. Both axes are logarithmic. Lines further left and lower are quieter."
    )
}

/// Draws the chart, or returns a sentence if there is nothing to draw.
pub fn draw(jitter: &JitterRecord, all: &[CpuFigures<'_>]) -> Markup {
    let count_max = all.iter().map(|cpu| cpu.record.interruption_count).max().unwrap_or(0);
    let length_max = all.iter().map(|cpu| cpu.record.interruption_ns_max).max().unwrap_or(0);
    if count_max == 0 {
        return html! { p class="empty" { "No interruption of " (micro(&duration(jitter.threshold_ns))) " or longer occurred on any CPU." } };
    }
    let low = decade_below(jitter.threshold_ns);
    let x = LogScale { low, high: decade_above(length_max).max(low + 1), start: LEFT, end: WIDTH - RIGHT };
    let y = LogScale { low: 0, high: decade_above(count_max).max(1), start: BASE - LAST_STEP, end: TOP };
    html! {
        svg class="chart" viewBox={ "0 0 " (px(WIDTH)) " " (px(HEIGHT)) } role="img" aria-label="Interruptions by length, one line per CPU; the table below has the figures" {
            (axes(&x, &y))
            @for cpu in crate::html::longest_of(all, LINES_MAX).0.iter().rev() { (line(cpu, jitter.threshold_ns, &x, &y)) }
            (labels(all, &x))
        }
        ul class="legend" {
            @for part in CpuPart::MEASURED {
                @let number = all.iter().filter(|cpu| cpu.part == part).count();
                @if number > 0 { li { span class={ "line-swatch l-" (part.class()) } {} (part.phrase()) " " b { (number) } } }
            }
        }
    }
}

fn axes(x: &LogScale, y: &LogScale) -> Markup {
    html! {
        g class="axis" {
            @for (power, at) in y.decades() {
                line class="grid" x1=(px(x.start)) x2=(px(x.end)) y1=(px(at)) y2=(px(at)) {}
                text x=(px(x.start - 10.0)) y=(px(at + 4.0)) text-anchor="end" { (decade(ten_to(power))) }
            }
            line class="tick" x1=(px(x.start)) x2=(px(x.end)) y1=(px(BASE)) y2=(px(BASE)) {}
            text x=(px(x.start - 10.0)) y=(px(BASE + 4.0)) text-anchor="end" { "0" }
            @for (power, at) in x.decades() {
                line class="grid" x1=(px(at)) x2=(px(at)) y1=(px(y.end)) y2=(px(BASE)) {}
                text x=(px(at)) y=(px(BASE + 18.0)) text-anchor="middle" { (decade_name(power)) }
            }
            text class="axis-title" x=(px(x.end)) y=(px(HEIGHT - 6.0)) text-anchor="end" { "length of the interruption" }
            text class="axis-title" x=(px(LEFT - 10.0)) y="16" text-anchor="start" { "interruptions at least this long" }
        }
    }
}

/// Formats a length: "100 ns", "1 µs", "10 ms", "1 s".
fn decade_name(power: i32) -> String {
    let (unit, base) = match power {
        ..3 => ("ns", 0),
        3..6 => ("µs", 3),
        6..9 => ("ms", 6),
        _ => ("s", 9),
    };
    format!("{} {unit}", count(ten_to(power - base)))
}

fn ten_to(power: i32) -> u64 {
    u32::try_from(power).ok().and_then(|power| 10u64.checked_pow(power)).unwrap_or(1)
}

/// Draws steps down from all interruptions at the threshold to none after the longest.
fn line(cpu: &CpuFigures<'_>, threshold_ns: u64, x: &LogScale, y: &LogScale) -> Markup {
    let Ok(lengths) = &cpu.lengths else { return html! {} };
    let mut left = lengths.len();
    if left == 0 {
        return html! {};
    }
    let mut path = format!("M{} {}", px(x.at(threshold_ns as f64)), px(y.at(left as f64)));
    let (mut last_x, mut last_y) = (px(x.at(threshold_ns as f64)), px(y.at(left as f64)));
    for step in lengths.iter_recorded() {
        let length = step.value_iterated_to().min(cpu.record.interruption_ns_max).max(1);
        left = left.saturating_sub(step.count_at_value());
        let (to_x, to_y) = (px(x.at(length as f64)), px(if left == 0 { BASE } else { y.at(left as f64) }));
        if to_x != last_x {
            path.push_str(&format!("H{to_x}"));
        }
        if to_y != last_y {
            path.push_str(&format!("V{to_y}"));
        }
        (last_x, last_y) = (to_x, to_y);
    }
    let (id, part, number) = (cpu.record.cpu, cpu.part.phrase(), count(cpu.record.interruption_count));
    let longest = micro(&duration(cpu.record.interruption_ns_max));
    let title = format!("CPU {id}, {part}: {number} interruptions, longest {longest}");
    html! { path class={ "curve l-" (cpu.part.class()) } d=(path) { title { (title) } } }
}

/// Labels the worst CPU of each part at the end of its line.
fn labels(all: &[CpuFigures<'_>], x: &LogScale) -> Markup {
    let worst_of = |part: CpuPart| {
        let own = all.iter().filter(|cpu| cpu.part == part && cpu.study.length_ns_max.is_some());
        own.max_by_key(|cpu| (cpu.record.interruption_ns_max, std::cmp::Reverse(cpu.record.cpu)))
    };
    let mut placed: Vec<(f64, f64)> = Vec::new();
    let mut marks = Vec::new();
    for cpu in CpuPart::MEASURED.into_iter().filter_map(worst_of) {
        let at = x.at(cpu.record.interruption_ns_max as f64);
        let mut height = BASE - 10.0;
        while placed.iter().any(|(x, y)| (x - at).abs() < LABEL_WIDTH && (y - height).abs() < 16.0) {
            height -= 26.0;
        }
        placed.push((at, height));
        let is_left = at + LABEL_WIDTH > WIDTH;
        let text = format!("CPU {}: {}", cpu.record.cpu, micro(&duration(cpu.record.interruption_ns_max)));
        marks.push(html! {
            circle class={ "end l-" (cpu.part.class()) } cx=(px(at)) cy=(px(BASE)) r="4" {}
            text class="curve-label" x=(px(if is_left { at - 9.0 } else { at + 9.0 })) y=(px(height))
                text-anchor=(if is_left { "end" } else { "start" }) { (text) }
        });
    }
    html! { @for mark in marks { (mark) } }
}

/// Formats a power of ten for the axis: 10, 1 k, 100 k, 10 M.
fn decade(number: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = UNITS.into_iter().find(|(size, _)| number >= *size);
    unit.map_or_else(|| number.to_string(), |(size, letter)| format!("{} {letter}", number / size))
}
