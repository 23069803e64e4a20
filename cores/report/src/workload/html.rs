//! The section of workloads on the page.

use crate::workload::{
    article::{self, LEGEND, factor, gains, sentences, title},
    compare, run,
    words::{caveats, not_measured, ratio},
};
use lowlat_text::page::svg::px;
use lowlat_text::page::{Section, columns_table, micro, note, section as page_section};
use lowlat_text::units::clean;
use lowlat_workload::article::{ExplainedGain, Factor, Published};
use lowlat_workload::{Purpose, WorkloadRecord};
use maud::{Markup, html};

const STYLE: &str = include_str!("workload.css");
const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 180.0;
const ROW: f64 = 24.0;
const TOP: f64 = 8.0;

pub fn section(record: &WorkloadRecord, has_clusters: bool) -> Section {
    let lead = match record.purpose {
        Purpose::Run => "Operations per second: medians over rounds with 95 % intervals.",
        Purpose::Compare => "Operations per second, and the ratio round by round with its 95 % interval.",
        Purpose::Article => LEGEND,
    };
    let body = html! {
        (note("Not measured", &not_measured(record)))
        (note("Caveats", &caveats(record)))
        @match record.purpose {
            Purpose::Run => { (columns_table("Operations per second", &run::table(record))) }
            Purpose::Compare => { (columns_table("Comparison of two settings", &compare::table(record))) }
            Purpose::Article => {
                @for (gain, explained) in gains(record) { (one_gain(record, gain, &explained, has_clusters)) }
            }
        }
    };
    let lead = html! { (micro(lead)) };
    Section::new("workload", "Workloads", page_section("workload", "Workloads", &lead, &body))
        .with_style(STYLE)
}

fn one_gain(
    record: &WorkloadRecord,
    gain: &Published,
    explained: &[ExplainedGain],
    has_clusters: bool,
) -> Markup {
    html! {
        figure tabindex="0" class="card" {
            figcaption { h3 { (title(gain)) } }
            @if let Some(best) = article::best(explained) { (chart(gain, best)) }
            @for line in sentences(gain, explained, has_clusters) { p { (micro(&clean(&line))) } }
        }
        (columns_table(gain.title, &article::table(record, gain, has_clusters)))
    }
}

/// Bars of the published gain and of what explains it, on a logarithmic scale from 1.
fn chart(gain: &Published, of: &ExplainedGain) -> Markup {
    let bars: [(&str, Option<&Factor>); 3] = [
        ("placement alone", of.placement.as_ref()),
        ("idle states alone", of.idle.as_ref()),
        ("both", of.both.as_ref()),
    ];
    let highest = bars.iter().filter_map(|(_, of)| Some((*of)?.ratio.high)).fold(gain.factor, f64::max);
    let at = |factor: f64| {
        LEFT + (WIDTH - LEFT - RIGHT) * (factor.max(1.0).ln() / highest.ln().max(f64::MIN_POSITIVE))
    };
    let y = |row: usize| TOP + ROW * row as f64;
    let height = TOP * 2.0 + ROW * (bars.len() + 1) as f64;
    html! {
        svg class="chart gains" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img"
            aria-label={ "Published gain and what placement and idle states make of it in " (of.workload) "; the sentences below have the figures" } {
            line class="grid" x1=(px(LEFT)) x2=(px(LEFT)) y1="0" y2=(px(height)) {}
            (bar("published", "published", (y(0), at(gain.factor), at(gain.factor)), gain.text))
            @for (row, (label, of)) in bars.iter().enumerate() {
                @let end = of.map_or(LEFT, |of| at(of.ratio.median));
                @let high = of.map_or(end, |of| at(of.ratio.high));
                (bar(label, "ours", (y(row + 1), end, high), &factor(*of)))
                @if let Some(of) = of {
                    @let middle = px(y(row + 1) + ROW / 2.0);
                    line class="spread" x1=(px(at(of.ratio.low))) x2=(px(at(of.ratio.high))) y1=(middle) y2=(middle) {
                        title { (label) ": " (ratio(&of.ratio)) }
                    }
                }
            }
            line class="goal" x1=(px(at(gain.factor))) x2=(px(at(gain.factor))) y1="0" y2=(px(height)) {}
        }
    }
}

/// A bar to `end`, with its text right of `high`.
fn bar(label: &str, class: &str, (y, end, high): (f64, f64, f64), text: &str) -> Markup {
    html! {
        text x=(px(LEFT - 10.0)) y=(px(y + ROW / 2.0 + 4.0)) text-anchor="end" { (label) }
        rect class=(class) x=(px(LEFT)) y=(px(y + 4.0)) width=(px((end - LEFT).max(1.0))) height=(px(ROW - 8.0)) {}
        text class="value" x=(px(high + 10.0)) y=(px(y + ROW / 2.0 + 4.0)) { (text) }
    }
}
