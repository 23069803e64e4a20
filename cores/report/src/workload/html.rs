//! The section of workloads on the page.

use crate::workload::{
    article::{self, LEGEND, factor, gains, sentences, title},
    compare, headline, run,
    words::{caveats, how, not_measured, per_second, ratio},
    workload_text,
};
use lowlat_host::HostSnapshot;
use lowlat_text::{
    page::{Section, columns_table, micro, note, section as page_section, svg::px, tile},
    units::clean,
    view::{View, ViewPage},
};
use lowlat_workload::{
    Purpose, WorkloadMeasurement, WorkloadRecord,
    article::{ExplainedGain, Factor, Published},
};
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

/// Workloads on the page of a run.
const TILES_MAX: usize = 6;

/// Returns the view of workloads under settings.
pub fn view<'a>(record: &'a WorkloadRecord, host: &'a HostSnapshot) -> View<'a> {
    let has_clusters = !host.topology.clusters.is_empty();
    View {
        kind: WorkloadMeasurement::KIND,
        sentence: Some(format!("{}.", headline(record))),
        doubts: caveats(record),
        add_summary: Box::new(move |out, width| out.push_str(&workload_text(record, has_clusters, width))),
        page: Box::new(move || {
            let tiles = html! {
                @for (label, value, note) in tiles(record).into_iter().take(TILES_MAX) { (tile(&label, &value, &note)) }
            };
            let verdict = html! {
                p class="verdict" { (micro(&clean(&headline(record)))) "." }
                @if record.purpose == Purpose::Compare { @for side in compare::sides(record) { p { (clean(&side)) } } }
                @if record.purpose == Purpose::Article { p { (article::SOURCE) } }
                p { (micro(&how(record))) }
                div class="tiles" { (tiles) }
            };
            ViewPage {
                title: "Workloads",
                verdict,
                tiles,
                sections: vec![section(record, has_clusters)],
                parameters: Some(
                    html! { "Workloads: " (record.rounds) " rounds of " (record.cells.len()) " rows." },
                ),
            }
        }),
    }
}

/// Label, value and note of each tile.
fn tiles(record: &WorkloadRecord) -> Vec<(String, String, String)> {
    match record.purpose {
        Purpose::Run => run::measured(record)
            .into_iter()
            .filter_map(|place| {
                let cell = record.cells.get(place)?;
                let rate = per_second(record.rate(place)?.median);
                Some((clean(&cell.workload), rate, format!("{}/s, {}", clean(&cell.unit), cell.setting)))
            })
            .collect(),
        Purpose::Compare => compare::pairs(record)
            .into_iter()
            .filter_map(|pair| {
                let cell = record.cells.get(pair.a)?;
                Some((clean(&cell.workload), ratio(&pair.ratio), "B / A".to_owned()))
            })
            .collect(),
        Purpose::Article => gains(record)
            .into_iter()
            .filter_map(|(gain, explained)| {
                let best = article::best(&explained)?;
                let value = article::share(best.share);
                Some((gain.key.to_owned(), value, format!("of the published {}", gain.text)))
            })
            .collect(),
    }
}
