//! The section of a ping-pong run: chart and table by size.

use super::chart::{ChartColumn, chart_with_unit};
use super::pingpong::{bytes, doubts, table};
use lowlat_net::pingpong::{PingpongRecord, SizeRecord};
use lowlat_text::page::{Section, columns_table, micro, note, section as page_section};
use lowlat_text::units::{count, duration};
use maud::html;

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
            (columns_table("Half round trips by size", &table(record)))
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
