//! The section of a ping-pong run: chart and table by size.

use super::chart::time_name;
use super::pingpong::{bytes, doubts, quantile_of};
use lowlat_net::pingpong::{PingpongRecord, SizeRecord};
use lowlat_text::page::svg::{LogScale, decade_above, decade_below, px};
use lowlat_text::page::{Section, data_table, micro, note, section as page_section};
use lowlat_text::units::{count, duration};
use maud::{Markup, html};

pub(super) const STYLE: &str = include_str!("net.css");
pub(super) const NONE: &str = "–";
const WIDTH: f64 = 1_080.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 44.0;
/// Largest number of sizes with a label each.
const LABELS_MAX: usize = 24;

pub fn section(record: &PingpongRecord) -> Section {
    let lead = html! {
        "Half round trips by size of messages. Percentiles that the number of round trips does not support are left out."
    };
    let doubts = doubts(record);
    let body = html! {
        (note("Caveats", &doubts))
        @if record.sizes.is_empty() {
            p class="empty" { "Nothing was measured." }
        } @else {
            figure tabindex="0" class="card" {
                figcaption { h3 { "By size" } p { "Dot: median. Bar: minimum to p99. Line: to the maximum." } }
                (chart(&record.sizes))
            }
            (table(record))
        }
    };
    Section::new("pingpong", "Round trips", page_section("pingpong", "Round trips", &lead, &body))
        .with_style(STYLE)
}

fn chart(sizes: &[SizeRecord]) -> Markup {
    let low = sizes.iter().map(|size| size.figures.min_ns).min().unwrap_or(1);
    let high = sizes.iter().map(|size| size.figures.max_ns).max().unwrap_or(1);
    let (low, high) = (decade_below(low), decade_above(high));
    let y = LogScale { low, high: high.max(low + 1), start: HEIGHT - BOTTOM, end: TOP };
    let step = (WIDTH - LEFT - RIGHT) / sizes.len().max(1) as f64;
    let every = sizes.len().div_ceil(LABELS_MAX);
    html! {
        svg class="chart pingpong" viewBox={ "0 0 " (px(WIDTH)) " " (px(HEIGHT)) } role="img"
            aria-label="Half round trip by size; the figures are in the table below" {
            g class="axis" {
                @for (power, at) in y.decades() {
                    line class="grid" x1=(px(LEFT)) x2=(px(WIDTH - RIGHT)) y1=(px(at)) y2=(px(at)) {}
                    text x=(px(LEFT - 8.0)) y=(px(at + 4.0)) text-anchor="end" { (time_name(power)) }
                }
                text class="axis-title" x=(px(WIDTH - RIGHT)) y=(px(HEIGHT - 6.0)) text-anchor="end" { "bytes" }
            }
            @for (place, size) in sizes.iter().enumerate() {
                @let x = LEFT + step * (place as f64 + 0.5);
                (mark(size, x, &y))
                @if place % every == 0 {
                    text class="size" x=(px(x)) y=(px(HEIGHT - BOTTOM + 17.0)) text-anchor="middle" { (count(u64::from(size.size_bytes))) }
                }
            }
        }
    }
}

fn mark(size: &SizeRecord, x: f64, y: &LogScale) -> Markup {
    let figures = &size.figures;
    let at = |ns: u64| px(y.at(ns.max(1) as f64));
    let p99 = quantile_of(size, 0.99);
    let said = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)));
    let title = format!(
        "{}: p50 {}, p99 {}, p99.9 {}, max {}",
        bytes(size.size_bytes),
        said(quantile_of(size, 0.5)),
        said(p99),
        said(quantile_of(size, 0.999)),
        said(Some(figures.max_ns))
    );
    html! {
        g class="mark" {
            title { (title) }
            line class="whole" x1=(px(x)) x2=(px(x)) y1=(at(figures.min_ns)) y2=(at(figures.max_ns)) {}
            @if let Some(p99) = p99 {
                line class="most" x1=(px(x)) x2=(px(x)) y1=(at(figures.min_ns)) y2=(at(p99)) {}
            }
            circle cx=(px(x)) cy=(at(figures.median_ns)) r="4" {}
        }
    }
}

fn table(record: &PingpongRecord) -> Markup {
    let has_rate = record.scenario.rate_per_s.is_some();
    let from_send = if has_rate { format!("p{} from send", record.percentile) } else { String::new() };
    let heads = [
        "Bytes",
        "Mean",
        "Min",
        "p50",
        "p99",
        &from_send,
        "p99.9",
        "p99.99",
        "Max",
        "Std. dev.",
        "Round trips",
    ];
    html! {
        div class="card flush" {
            (data_table("Half round trips by size", "numbers", &heads, &html! { @for size in &record.sizes { (row(size, has_rate)) } }))
        }
    }
}

fn row(size: &SizeRecord, has_rate: bool) -> Markup {
    let figures = &size.figures;
    let ns = |ns: u64| micro(&duration(ns));
    let quantile = |quantile: f64| quantile_of(size, quantile).map_or_else(|| NONE.to_owned(), ns);
    html! {
        tr {
            th scope="row" { (count(u64::from(size.size_bytes))) }
            td { (ns(figures.mean_ns)) } td { (ns(figures.min_ns)) }
            td class="strong" { (quantile(0.5)) } td { (quantile(0.99)) }
            @if has_rate { td { (size.from_send.as_ref().map_or_else(|| NONE.to_owned(), |of| ns(of.percentile_ns))) } }
            td { (quantile(0.999)) } td { (quantile(0.999_9)) } td { (ns(figures.max_ns)) }
            td { (ns(figures.stddev_ns)) } td { (count(figures.iterations)) }
        }
    }
}
