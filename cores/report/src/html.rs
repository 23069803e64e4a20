//! The section of a survey: heat map and table of levels.

use super::c2c::{darkness, levels, name, notes, order};
use lowlat_cache::c2c::{C2cRecord, Kind, LatencyPredictor, partitions};
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use lowlat_text::page::svg::px;
use lowlat_text::page::{Section, columns_table, micro, note, section as page_section};
use lowlat_text::units::duration_fine;
use maud::{Markup, html};

const STYLE: &str = include_str!("cache.css");
/// Width and height of the map.
const SIDE: f64 = 720.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 22.0;
/// Most labels of an axis.
const LABELS_MAX: usize = 20;
/// Most cells with a hover text each.
const TOOLTIPS_MAX: usize = 4_096;
/// Least distance between two borders of one kind.
const BORDER_EVERY_MIN: f64 = 12.0;
/// Shades from near to far.
const SHADES: usize = 6;

pub fn section(record: &C2cRecord, topology: &Topology) -> Section {
    let lead = html! {
        "Time that a cache line takes between two CPUs, in the kernel's order of packages, NUMA nodes, caches, clusters and cores."
    };
    let body = html! {
        @for (head, lines) in notes(record, topology) { (note(head, &lines)) }
        @if record.levels.is_empty() {
            p class="empty" { "Nothing was measured." }
        } @else {
            figure tabindex="0" class="card" {
                figcaption { h3 { "Pairs" } p { (caption(topology)) } }
                (map(record, topology))
            }
            (columns_table("Levels of latency", &levels(record, topology)))
        }
    };
    Section::new("c2c", "Cores", page_section("c2c", "Latency between cores", &lead, &body)).with_style(STYLE)
}

fn caption(topology: &Topology) -> String {
    let kinds: Vec<&str> = partitions(topology)
        .iter()
        .filter(|(_, groups)| groups.len() > 1)
        .map(|(kind, _)| kind.many)
        .collect();
    let borders =
        if kinds.is_empty() { String::new() } else { format!(" Lines: borders of {}.", kinds.join(", ")) };
    format!("Darker is slower, one shade for each level.{borders}")
}

fn map(record: &C2cRecord, topology: &Topology) -> Markup {
    let cpus = order(record, topology);
    let prediction = record.prediction();
    let cell = SIDE / cpus.len().max(1) as f64;
    let every = cpus.len().div_ceil(LABELS_MAX).next_power_of_two();
    let labels = || cpus.iter().enumerate().filter(|(place, _)| place % every == 0);
    html! {
        div class="scroll" tabindex="0" role="region" aria-label="Latency of each pair of CPUs" {
            svg class="chart c2c" viewBox={ "0 0 " (px(LEFT + SIDE)) " " (px(TOP + SIDE)) } role="img"
                aria-label="Heat map of the latency between CPUs; the table below has the levels" {
                @for (place, cpu) in labels() {
                    @let middle = cell * (place as f64 + 0.5);
                    text x=(px(LEFT + middle)) y=(px(TOP - 7.0)) text-anchor="middle" { (cpu) }
                    text x=(px(LEFT - 7.0)) y=(px(TOP + middle + 4.0)) text-anchor="end" { (cpu) }
                }
                @for (row, own) in cpus.iter().enumerate() { (line(record, &prediction, &cpus, (row, *own), cell)) }
                (borders(topology, &cpus, cell))
            }
        }
        ul class="legend" {
            @for (place, level) in record.levels.iter().enumerate() {
                li {
                    span class={ "swatch h" (shade(record, level.median_ns) + 1) } {}
                    (name(record, topology, place)) ", " (micro(&duration_fine(level.median_ns)))
                }
            }
        }
    }
}

/// One row: a rectangle per cell, or per run of equal cells where there are many.
fn line(
    record: &C2cRecord,
    prediction: &LatencyPredictor<'_>,
    cpus: &[CpuId],
    (row, own): (usize, CpuId),
    cell: f64,
) -> Markup {
    let is_small = cpus.len() * cpus.len() <= TOOLTIPS_MAX;
    let gap = if cell > 8.0 { 1.0 } else { 0.0 };
    let shade = |other: &CpuId| {
        let (ns, _) = prediction.time(own, *other).filter(|_| *other != own)?;
        Some(shade(record, ns))
    };
    let shades: Vec<Option<usize>> = cpus.iter().map(shade).collect();
    let mut start = 0;
    let runs = shades.chunk_by(|a, b| a == b && !is_small).map(|run| {
        start += run.len();
        (start - run.len(), run.len(), run.first().copied().flatten())
    });
    html! {
        @for (start, length, shade) in runs {
            @if let Some(shade) = shade {
                rect class={ "h" (shade + 1) } x=(px(LEFT + cell * start as f64))
                    y=(px(TOP + cell * row as f64)) width=(px(cell * length as f64 - gap)) height=(px(cell - gap)) {
                    @if is_small { (title(prediction, own, cpus.get(start).copied())) }
                }
            }
        }
    }
}

fn title(prediction: &LatencyPredictor<'_>, own: CpuId, other: Option<CpuId>) -> Markup {
    let Some((other, (ns, is_measured))) =
        other.and_then(|other| Some((other, prediction.time(own, other)?)))
    else {
        return html! {};
    };
    let how = if is_measured { "" } else { ", predicted" };
    html! { title { "CPUs " (own) " and " (other) ": " (micro(&duration_fine(ns))) (how) } }
}

/// Lines where a group of the kernel ends; the larger the group, the thicker.
fn borders(topology: &Topology, cpus: &[CpuId], cell: f64) -> Markup {
    let all: Vec<(Kind, Vec<&CpuSet>)> = partitions(topology);
    let starts = |groups: &[&CpuSet]| -> Vec<usize> {
        let group = |cpu: &CpuId| groups.iter().position(|group| group.contains(*cpu));
        let ends = |(_, pair): &(usize, &[CpuId])| pair.first().map(group) != pair.get(1).map(group);
        cpus.windows(2).enumerate().filter(ends).map(|(place, _)| place + 1).collect()
    };
    let is_wide = |groups: &[&CpuSet]| {
        let widest = groups.iter().map(|group| group.len()).max().unwrap_or(0);
        groups.len() > 1 && cell * widest as f64 >= BORDER_EVERY_MIN
    };
    html! {
        @for (thickness, (_, groups)) in all.iter().enumerate().filter(|(_, (_, groups))| is_wide(groups)) {
            @for place in starts(groups) {
                @let at = cell * place as f64 - 0.5;
                line class={ "border b" (thickness) } x1=(px(LEFT + at)) x2=(px(LEFT + at)) y1=(px(TOP)) y2=(px(TOP + SIDE)) {}
                line class={ "border b" (thickness) } x1=(px(LEFT)) x2=(px(LEFT + SIDE)) y1=(px(TOP + at)) y2=(px(TOP + at)) {}
            }
        }
    }
}

/// The shade of a time: 0 for the fastest level.
fn shade(record: &C2cRecord, ns: f64) -> usize {
    darkness(record, ns, SHADES)
}
