//! The section of a ping-pong run: chart and table by size.

use super::chart::{ChartColumn, chart_with_unit};
use super::pingpong::{bytes, doubts};
use lowlat_net::pingpong::{PingpongRecord, SizeRecord};
use lowlat_text::page::{Section, data_table, micro, note, section as page_section};
use lowlat_text::units::{count, duration};
use maud::{Markup, html};

pub(super) const STYLE: &str = include_str!("net.css");
pub(super) const NONE: &str = "–";
const HEIGHT: f64 = 360.0;
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
                (chart_with_unit(&marks(&record.sizes), None, "Half round trip by size; the figures are in the table below", ("bytes", HEIGHT)))
            }
            (table(record))
        }
    };
    Section::new("pingpong", "Round trips", page_section("pingpong", "Round trips", &lead, &body))
        .with_style(STYLE)
}

fn marks(sizes: &[SizeRecord]) -> Vec<ChartColumn> {
    let every = sizes.len().div_ceil(LABELS_MAX);
    let mark = |(place, size): (usize, &SizeRecord)| {
        let figures = &size.figures;
        let is_labelled = place % every == 0;
        let said = |quantile: f64| time(size.quantile_ns(quantile));
        ChartColumn {
            label: if is_labelled { count(u64::from(size.size_bytes)) } else { String::new() },
            title: format!(
                "{}: p50 {}, p99 {}, p99.9 {}, max {}",
                bytes(size.size_bytes),
                said(0.5),
                said(0.99),
                said(0.999),
                time(Some(figures.max_ns))
            ),
            dots: vec![figures.median_ns as f64],
            bar: size.quantile_ns(0.99).map(|p99_ns| (figures.min_ns as f64, p99_ns as f64)),
            whole: Some((figures.min_ns as f64, figures.max_ns as f64)),
        }
    };
    sizes.iter().enumerate().map(mark).collect()
}

/// A time in a table, if it is known.
pub(super) fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)))
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
    let ns = |ns: u64| time(Some(ns));
    let quantile = |quantile: f64| time(size.quantile_ns(quantile));
    html! {
        tr {
            th scope="row" { (count(u64::from(size.size_bytes))) }
            td { (ns(figures.mean_ns)) } td { (ns(figures.min_ns)) }
            td class="strong" { (quantile(0.5)) } td { (quantile(0.99)) }
            @if has_rate { td { (time(size.from_send.as_ref().map(|of| of.percentile_ns))) } }
            td { (quantile(0.999)) } td { (quantile(0.999_9)) } td { (ns(figures.max_ns)) }
            td { (ns(figures.stddev_ns)) } td { (count(figures.iterations)) }
        }
    }
}
