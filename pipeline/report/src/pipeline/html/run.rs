//! The page of one run: tick to order, and tick to trade with its parts.

use crate::pipeline::terminal::{
    balance, feed_line, gateway_line, load_words, run_counts, run_headline, stages, whole, wire_stages,
};
use lowlat_pipeline::{PipelineDocument, StageFigures, WireRecord};
use lowlat_text::page::svg::px;
use lowlat_text::page::{Section, data_table, facts, micro, page, section as page_section, tile, written_by};
use lowlat_text::units::{clean, count, duration};
use maud::{Markup, html};

const NONE: &str = "–";
const STYLE: &str = include_str!("run.css");
const BAR_WIDTH: f64 = 1_080.0;
const BAR_HEIGHT: f64 = 34.0;
/// Narrowest part that has its number inside.
const LABEL_WIDTH_MIN: f64 = 22.0;

/// The page of a run.
pub fn run_html(document: &PipelineDocument) -> String {
    let record = &document.record;
    let mut sections = vec![Section::new("summary", "Summary", summary(document)).with_style(STYLE)];
    sections.extend(record.wire.iter().map(|wire| Section::new("trade", "Tick to trade", trade(wire))));
    sections.push(Section::new("order", "Tick to order", order(document)));
    let findings = sentences("findings", "Findings", "What went wrong in the run.", &record.findings);
    sections.push(Section::new("findings", "Findings", findings));
    let doubts = sentences("doubts", "Doubts", "What makes the figures doubtful.", &record.warnings);
    sections.push(Section::new("doubts", "Doubts", doubts));
    let footer = html! {
        footer {
            (written_by(&document.lowlat_version, "pipeline run", &document.started_at))
        }
    };
    page("a run of the pipeline", &sections, &footer)
}

fn summary(document: &PipelineDocument) -> Markup {
    let record = &document.record;
    let shown = record.wire.as_ref().map_or(&record.stages.t2o, |wire| &wire.stages.tick_to_trade);
    let what = if record.wire.is_some() { "Tick to trade" } else { "Tick to order" };
    let of = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)));
    let missing = record.wire.as_ref().and_then(|wire| wire.feed.as_ref()).map_or(0, |feed| feed.missing);
    let feed = document.options.feed.clone().unwrap_or_else(|| "made by md".to_owned());
    let gateway = document.options.gateway.clone().unwrap_or_else(|| "td itself".to_owned());
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            p class="eyebrow" { "A run of the trading pipeline" }
            h1 id="summary-title" { (clean(&load_words(&record.parameters))) }
            p class="sub" { (micro(&clean(&run_headline(record)))) }
            (facts([
                ("Started", document.started_at.clone()),
                ("Quotes", feed),
                ("Exchange", gateway),
            ]))
            p class="small" { (clean(&run_counts(record))) ". " (clean(&balance(record))) "." }
            @if document.is_interrupted { p class="note" { "The run was interrupted; the results so far are shown." } }
            div class="tiles" {
                (tile(&format!("{what}, p50"), &of(shown.p50_ns), &format!("{} orders", count(shown.count))))
                (tile(&format!("{what}, p99"), &of(shown.p99_ns), &format!("max {}", of(shown.max_ns))))
                (tile("Orders", &count(record.orders), &format!("{} rejected", count(record.rejected))))
                (tile("Lost or missing", &count(record.lost + missing), "must be 0"))
            }
        }
    }
}

fn trade(wire: &WireRecord) -> Markup {
    let all = wire_stages(&wire.stages);
    let lead = html! {
        "From the kernel's stamp of the quote's packet to that of the order's packet. Each part starts where the one above it ends."
    };
    let body = html! {
        @if wire.stages.tick_to_trade.count > 0 { (bar(&all)) }
        (table("Parts of tick to trade", &all))
        @for line in wire.feed.iter().map(feed_line).chain(wire.gateway.iter().map(gateway_line)) {
            p class="small" { (clean(&line)) }
        }
    };
    page_section("trade", "Tick to trade", &lead, &body)
}

/// The means of the parts side by side: only means add up.
fn bar(all: &[(&str, &StageFigures)]) -> Markup {
    let parts: Vec<_> = all.iter().take(all.len().saturating_sub(1)).collect();
    let total: f64 = parts.iter().filter_map(|(_, figures)| figures.mean_ns).sum();
    let mut x = 0.0;
    let drawn = parts.iter().enumerate().map(|(number, (name, figures))| {
        let mean_ns = figures.mean_ns.unwrap_or(0.0);
        let (start, width) = (x, if total > 0.0 { mean_ns / total * BAR_WIDTH } else { 0.0 });
        x += width;
        let title = format!("{}. {name}: mean {}", number + 1, micro(&duration(whole(mean_ns))));
        (number, start, width, title)
    });
    let drawn: Vec<_> = drawn.collect();
    html! {
        figure tabindex="0" class="card" {
            figcaption { h3 { "Where the mean goes" } p { "Numbers are the rows of the table below." } }
            svg class="parts" viewBox=(format!("0 0 {BAR_WIDTH} {BAR_HEIGHT}")) role="img" aria-label="Mean of each part of tick to trade, side by side; the figures are in the table below" {
                @for (number, start, width, title) in &drawn {
                    g class=(format!("part p-{number}")) {
                        title { (title) }
                        rect x=(px(*start)) y="0" width=(px(*width)) height=(px(BAR_HEIGHT)) {}
                        @if *width >= LABEL_WIDTH_MIN {
                            text x=(px(start + width / 2.0)) y=(px(BAR_HEIGHT / 2.0 + 4.5)) text-anchor="middle" { (number + 1) }
                        }
                    }
                }
            }
        }
    }
}

fn order(document: &PipelineDocument) -> Markup {
    let lead = html! { "Inside the pipeline: from the quote's publication to td's read of the order." };
    let all = stages(&document.record.stages);
    page_section("order", "Tick to order", &lead, &table("Stages of tick to order", &all))
}

fn table(label: &str, all: &[(&str, &StageFigures)]) -> Markup {
    let ns = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)));
    html! {
        div class="card flush" {
            (data_table(label, "numbers", &["#", "<Stage", "Count", "Mean", "p50", "p99", "p99.9", "Max"], &html! {
                @for (number, (name, figures)) in all.iter().enumerate() {
                    tr {
                        td { (number + 1) }
                        th scope="row" class="left" { (name) }
                        td { (count(figures.count)) }
                        td { (ns(figures.mean_ns.map(whole))) }
                        td { (ns(figures.p50_ns)) }
                        td { (ns(figures.p99_ns)) }
                        td { (ns(figures.p99_9_ns)) }
                        td { (ns(figures.max_ns)) }
                    }
                }
            }))
        }
    }
}

fn sentences(id: &str, title: &str, lead: &str, found: &[String]) -> Markup {
    let lead = html! { (lead) };
    let body = html! {
        @if found.is_empty() { p class="empty" { "None." } } @else {
            div class="card" { ul class="warnings" { @for doubt in found { li { (micro(&clean(doubt))) } } } }
        }
    };
    page_section(id, title, &lead, &body)
}
