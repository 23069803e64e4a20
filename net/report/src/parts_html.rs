//! Parts of round trips on the page: a stacked bar for each size, their figures, and the causes of the slowest.

use super::{
    html::time,
    parts::{cause_rows, name, sentences, shown},
    pingpong::{bytes, quoted},
};
use lowlat_net::pingpong::{
    PingpongRecord, SizeRecord,
    parts::{PARTS, Part, SizeParts},
};
use lowlat_text::page::svg::px;
use lowlat_text::page::{Section, data_table, micro, section as page_section};
use lowlat_text::units::{clean, count, duration, percent, plural};
use maud::{Markup, html};

const STYLE: &str = include_str!("parts.css");
const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 92.0;
const ROW: f64 = 24.0;

/// Builds the section, if the run has parts.
pub fn section(record: &PingpongRecord) -> Option<Section> {
    let sizes: Vec<(&SizeRecord, &SizeParts)> =
        record.sizes.iter().filter_map(|size| Some((size, size.parts.as_ref()?))).collect();
    let (size, parts) = quoted(record).and_then(|size| Some((size, size.parts.as_ref()?)))?;
    let title = "Where the time goes";
    let lead = html! {
        "Parts of whole round trips, in the order of time, from rounds with time stamps. They add up to the time that the counter measured."
    };
    let body = html! {
        figure tabindex="0" class="card parts" {
            figcaption { h3 { "By size" } p { "Medians of the parts. Time on the server is hatched." } }
            (legend(record, &sizes))
            (chart(record, &sizes))
        }
        (table(record, size, parts))
        div class="card" {
            ul class="sentences" { @for sentence in sentences(record, parts) { li { (micro(&clean(&sentence))) } } }
        }
        @if !parts.slowest.is_empty() { (causes(record, size, parts)) }
    };
    Some(
        Section::new("pingpong-parts", title, page_section("pingpong-parts", title, &lead, &body))
            .with_style(STYLE),
    )
}

/// Class of a part: both ends have the same hue.
fn class(part: Part) -> &'static str {
    match part {
        Part::ClientSend => "part send",
        Part::ServerSend => "part send server",
        Part::ClientDriver => "part driver",
        Part::ServerDriver => "part driver server",
        Part::Wire => "part wire",
        Part::Nics => "part nics",
        Part::ClientSocket => "part socket",
        Part::ServerSocket => "part socket server",
        Part::ClientWake => "part wake",
        Part::ServerWake => "part wake server",
        Part::Program => "part program server",
    }
}

fn legend(record: &PingpongRecord, sizes: &[(&SizeRecord, &SizeParts)]) -> Markup {
    let is_shown =
        |part: &&Part| sizes.iter().any(|(_, of)| shown(record, of).iter().any(|one| one.part == **part));
    html! {
        ul class="legend" {
            @for part in PARTS.iter().filter(is_shown) {
                li { span class={ "swatch " (class(*part)) } {} (name(record, *part)) }
            }
        }
    }
}

fn chart(record: &PingpongRecord, sizes: &[(&SizeRecord, &SizeParts)]) -> Markup {
    let total = |parts: &SizeParts| shown(record, parts).iter().map(|of| of.median_ns).sum::<u64>();
    let longest = sizes.iter().map(|(_, parts)| total(parts)).max().unwrap_or(1).max(1);
    let scale = |ns: u64| ns as f64 / longest as f64 * (WIDTH - LEFT - RIGHT);
    let height = ROW * sizes.len() as f64;
    html! {
        svg class="chart parts" viewBox={ "0 0 " (px(WIDTH)) " " (px(height)) } role="img"
            aria-label="Parts of a round trip by size; the figures are in the table below" {
            defs {
                pattern id="server-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    line class="hatch" x1="0" y1="0" x2="0" y2="6" {}
                }
            }
            @for (at, (size, parts)) in sizes.iter().enumerate() {
                (bar(record, size, parts, ROW * at as f64, &scale, total(parts)))
            }
        }
    }
}

fn bar(
    record: &PingpongRecord,
    size: &SizeRecord,
    parts: &SizeParts,
    top: f64,
    scale: &dyn Fn(u64) -> f64,
    total_ns: u64,
) -> Markup {
    let mut x = LEFT;
    let pieces: Vec<_> = shown(record, parts)
        .into_iter()
        .map(|of| {
            let start = x;
            x += scale(of.median_ns);
            (of, start)
        })
        .collect();
    let middle = top + ROW / 2.0 + 4.0;
    html! {
        g {
            text class="row-label" x=(px(LEFT - 10.0)) y=(px(middle)) text-anchor="end" { (count(u64::from(size.size_bytes))) " B" }
            @for (of, start) in &pieces {
                @let title = format!("{}: median {}", name(record, of.part), micro(&duration(of.median_ns)));
                @let width = px(scale(of.median_ns).max(0.1));
                rect class=(class(of.part)) x=(px(*start)) y=(px(top + 2.0)) width=(width) height=(px(ROW - 4.0)) { title { (title) } }
                @if of.part.is_server() {
                    rect class="hatched" x=(px(*start)) y=(px(top + 2.0)) width=(width) height=(px(ROW - 4.0)) {}
                }
            }
            text class="row-total" x=(px(x + 8.0)) y=(px(middle)) { (micro(&duration(total_ns))) }
        }
    }
}

fn table(record: &PingpongRecord, size: &SizeRecord, parts: &SizeParts) -> Markup {
    let head = format!("Part of a round trip of {}", bytes(size.size_bytes));
    let title = format!("Parts of a round trip of {}", bytes(size.size_bytes));
    html! {
        div class="card flush" {
            (data_table(&title, "numbers of-parts", &[&head, "Median", "p99", "Share of all time"], &html! {
                @for of in shown(record, parts) {
                    tr {
                        th scope="row" { span class={ "swatch " (class(of.part)) } {} " " (name(record, of.part)) }
                        td class="strong" { (micro(&duration(of.median_ns))) }
                        td { (time(of.p99_ns)) }
                        td { (percent(parts.share_of(of) * 100.0)) }
                    }
                }
            }))
        }
    }
}

fn causes(record: &PingpongRecord, size: &SizeRecord, parts: &SizeParts) -> Markup {
    let rows = cause_rows(record, &parts.slowest);
    let title =
        format!("The slowest {} of {}", plural(parts.slowest.len(), "round trip"), bytes(size.size_bytes));
    html! {
        div class="card flush" {
            (data_table(&title, "numbers of-parts slowest", &[&title, "Cause", "Count", "Slowest"], &html! {
                @for row in rows {
                    tr {
                        th scope="row" { (row.part) } td { (row.cause) }
                        td class="strong" { (count(row.count)) } td { (micro(&duration(row.longest_ns))) }
                    }
                }
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::tests::record;

    #[test]
    fn the_page_has_a_bar_by_part_the_figures_and_the_causes() {
        assert!(section(&PingpongRecord::default()).is_none());
        let page = lowlat_text::page::page("test", &[section(&record(true)).unwrap()], &html! {});
        for part in [
            "Where the time goes",
            "server: wake-up",
            "class=\"hatched\"",
            "The slowest 5 round trips",
            "preempted by burn\\u{1b}[2J",
            "1.10 times as long",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let rects = page.matches("<rect class=\"part").count();
        assert_eq!(rects, PARTS.len() - 1, "no NIC stamps packets");
    }
}
