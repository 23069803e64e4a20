//! One interruption over time: the whole on top, nested activities below.

use crate::causes::spans::Span;
use crate::causes::{CauseFamily, label};
use lowlat_jitter::{Explained, TimelineChange};
use lowlat_text::page::micro;
use lowlat_text::page::svg::{cut, px, text_width};
use lowlat_text::units::{count, duration};
use maud::{Markup, html};

const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 2.0;
const RIGHT: f64 = 2.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 24.0;
/// Highest number of rows; deeper activities are drawn in the last one.
const DEPTH_MAX: usize = 9;

pub fn draw(explained: &Explained, spans: &[Span<'_>]) -> Markup {
    let length = explained.interruption.length_ns.max(1) as f64;
    let x = |ns: f64| LEFT + (ns / length).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT);
    let has_depth = |span: &&Span<'_>| matches!(span.kind, TimelineChange::Begins | TimelineChange::Happens);
    let rows = spans.iter().filter(has_depth).map(|span| span.depth.min(DEPTH_MAX) + 2).max().unwrap_or(1);
    let bottom = ROW * rows as f64;
    let (family, name) = whole(explained, spans);
    let took = micro(&duration(explained.interruption.length_ns));
    html! {
        svg class="chart flame" viewBox={ "0 0 " (px(WIDTH)) " " (px(bottom + AXIS)) } role="img" aria-label="Activities during the interruption, over time; the tables below have the figures" {
            (block(family, &name, &took, 0.0, (x(0.0), x(length))))
            @for span in spans { (shape(span, &x, bottom)) }
            (axis(length, &x, bottom))
        }
    }
}

/// Draws the top row: the whole interruption. Time not covered by the rows below is kernel entry and exit. If no step
/// is known, the row has the colour and the name of its only cause.
fn whole(explained: &Explained, spans: &[Span<'_>]) -> (CauseFamily, String) {
    match explained.parts.first() {
        Some(part) if spans.is_empty() => (CauseFamily::of(&part.cause), label(&part.cause)),
        _ => (CauseFamily::EntryExit, "whole interruption".to_owned()),
    }
}

fn shape(span: &Span<'_>, x: &dyn Fn(f64) -> f64, bottom: f64) -> Markup {
    let top = ROW * (span.depth.min(DEPTH_MAX) + 1) as f64;
    let start = x(span.offset_ns as f64);
    let end = x(span.offset_ns as f64 + span.took_ns as f64);
    match span.kind {
        TimelineChange::Begins => {
            let took = micro(&duration(span.took_ns));
            block(CauseFamily::of(span.cause), &label(span.cause), &took, top, (start, end))
        }
        TimelineChange::Happens => html! {
            path class={ "point f-" (CauseFamily::of(span.cause).class()) }
                d={ "M" (px(start)) " " (px(top + 3.0)) "l6 8l-6 8l-6 -8z" } { title { (label(span.cause)) } }
        },
        TimelineChange::Returns => html! {
            line class="mark-return" x1=(px(start)) x2=(px(start)) y1="0" y2=(px(bottom)) { title { "the measured thread runs again" } }
        },
        TimelineChange::Lost => html! {
            line class="mark-lost" x1=(px(start)) x2=(px(start)) y1="0" y2=(px(bottom)) { title { "events are missing before this moment" } }
        },
        TimelineChange::Ends => html! {},
    }
}

/// Draws a bar, with its name if it fits.
fn block(family: CauseFamily, name: &str, took: &str, top: f64, (start, end): (f64, f64)) -> Markup {
    let width = (end - start).max(0.8);
    let text = [format!("{name}  {took}"), name.to_owned()]
        .into_iter()
        .find(|text| text_width(text) + 10.0 <= width);
    let text = text.unwrap_or_else(|| cut(name, chars(width - 12.0)));
    html! {
        g class={ "f-" (family.class()) } {
            title { (name) ": " (took) }
            rect class={ "f-" (family.class()) } x=(px(start)) y=(px(top + 1.0)) width=(px(width)) height=(px(ROW - 2.0)) rx="2" {}
            @if width >= 40.0 { text x=(px(start + 6.0)) y=(px(top + 15.0)) { (text) } }
        }
    }
}

/// Returns how many characters fit a width.
fn chars(width: f64) -> usize {
    let each = text_width("m");
    (1..200usize).take_while(|count| *count as f64 * each <= width).count().max(1)
}

fn axis(length: f64, x: &dyn Fn(f64) -> f64, bottom: f64) -> Markup {
    let rough = length / 6.0;
    let decade = 10f64.powf(rough.max(1.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|of| of * decade).find(|step| *step >= rough);
    let step = step.unwrap_or(decade * 10.0);
    let marks = (0..=12u32).map(|at| f64::from(at) * step).take_while(|at| *at <= length * 0.97);
    html! {
        g class="axis" {
            line class="tick" x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(bottom + 2.0)) y2=(px(bottom + 2.0)) {}
            @for at in marks {
                line class="tick" x1=(px(x(at))) x2=(px(x(at))) y1=(px(bottom + 2.0)) y2=(px(bottom + 6.0)) {}
                text x=(px(x(at))) y=(px(bottom + 18.0)) text-anchor=(if at > 0.0 { "middle" } else { "start" }) { (mark_word(at)) }
            }
        }
    }
}

/// Formats a whole number in a suitable unit: "0", "500 ns", "2 µs".
fn mark_word(ns: f64) -> String {
    let (divisor, unit) = match ns {
        ns if ns < 1e3 => (1.0, "ns"),
        ns if ns < 1e6 => (1e3, "µs"),
        ns if ns < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    if ns <= 0.0 {
        return "0".to_owned();
    }
    let value = ns / divisor;
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    let text = text.parse::<u64>().map_or_else(|_| text.to_owned(), count);
    format!("{text}\u{a0}{unit}")
}
