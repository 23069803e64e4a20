//! Stacked causes per CPU: time taken per second, by family.

use crate::causes::{CauseFamily, by_family};
use crate::figures::Jitter;
use crate::figures::JitterRun;
use crate::html::causes::legend;
use lowlat_host::CpuId;
use lowlat_host_report::cpu_parts::{CpuPart, CpuParts};
use lowlat_jitter::{CpuCauses, JitterCauses};
use lowlat_text::page::svg::px;
use lowlat_text::page::{data_table, micro};
use lowlat_text::units::{clean, count, duration_fine, percent};
use maud::{Markup, html};
use std::collections::BTreeMap;

const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 92.0;
const AXIS: f64 = 30.0;
/// Highest number of rows per side; CPUs that lost most time are kept.
const ROWS_MAX: usize = 48;
/// Highest number of causes in a tooltip.
const CAUSES_IN_TITLE_MAX: usize = 6;

struct Row<'a> {
    cpu: CpuId,
    causes: &'a CpuCauses,
    /// Nanoseconds per second, by family.
    families: [f64; CauseFamily::ALL.len()],
    runtime_s: f64,
}

impl Row<'_> {
    fn of(&self, family: CauseFamily) -> f64 {
        self.families[family as usize]
    }

    fn total(&self) -> f64 {
        self.families.iter().sum()
    }
}

/// Builds the card: a panel for each side, each with a separate scale.
pub fn card(run: &JitterRun<'_>, jitter: &Jitter<'_>, causes: &JitterCauses) -> Markup {
    let seconds: BTreeMap<CpuId, f64> =
        jitter.study.cpus.iter().map(|cpu| (cpu.cpu, cpu.runtime_s)).collect();
    let parts = CpuParts::of(run.context.host, run.context.allocation);
    let rows = causes.cpus.iter().filter_map(|of| {
        let runtime_s = *seconds.get(&of.cpu)?;
        let families = by_family(of).map(|ns| ns as f64 / runtime_s);
        (runtime_s > 0.0).then_some((parts.get(of.cpu), Row { cpu: of.cpu, causes: of, families, runtime_s }))
    });
    let mut sides: BTreeMap<CpuPart, Vec<Row<'_>>> = BTreeMap::new();
    for (part, row) in rows {
        sides.entry(part).or_default().push(row);
    }
    let seen =
        CauseFamily::ALL.into_iter().filter(|of| sides.values().flatten().any(|row| row.of(*of) > 0.0));
    let families: Vec<(CauseFamily, String)> = seen.map(|family| (family, String::new())).collect();
    let scales = if sides.len() > 1 { " Each side has a separate scale." } else { "" };
    html! {
        figure tabindex="0" class="card stacked" {
            figcaption { h3 { "Causes per CPU" } p { "Time taken from each CPU per second, by cause." (scales) } }
            @if families.is_empty() {
                p class="empty" { "No interruption has a known cause." }
            } @else {
                (legend(&families))
                @for (part, rows) in sides { (panel(part, rows)) }
            }
        }
    }
}

fn panel(part: CpuPart, mut rows: Vec<Row<'_>>) -> Markup {
    let all = rows.len();
    if all > ROWS_MAX {
        rows.sort_by(|a, b| b.total().total_cmp(&a.total()).then(a.cpu.cmp(&b.cpu)));
        rows.truncate(ROWS_MAX);
    }
    let most = format!(", the {ROWS_MAX} of {} that lost most", count(all as u64));
    let shown = if all > rows.len() { most.as_str() } else { "" };
    let longest = rows.iter().map(Row::total).fold(0.0, f64::max);
    let (step, end) = ticks(longest);
    let height_each = if rows.len() > 16 { 14.0 } else { 20.0 };
    let bottom = height_each * rows.len() as f64;
    let scale = |ns_per_s: f64| ns_per_s / end * (WIDTH - LEFT - RIGHT);
    html! {
        p class="panel-title" { span class={ "swatch p-" (part.class()) } {} (part.phrase()) span class="count" { (lowlat_text::units::plural(all, "CPU")) (shown) } }
        svg class="chart" viewBox={ "0 0 " (px(WIDTH)) " " (px(bottom + AXIS)) } role="img" aria-label={ "Causes per CPU, " (part.phrase()) "; the table below has the figures" } {
            g class="axis" {
                @for at in marks(step, end) {
                    @let x = LEFT + scale(at);
                    line class="grid" x1=(px(x)) x2=(px(x)) y1="0" y2=(px(bottom + 4.0)) {}
                    text x=(px(x)) y=(px(bottom + 18.0)) text-anchor="middle" { @if at > 0.0 { (micro(&axis_word(at))) "/s" } @else { "0" } }
                }
            }
            @for (at, row) in rows.iter().enumerate() { (bar(row, height_each * at as f64, height_each, &scale)) }
            text class="row-label" x=(px(LEFT - 10.0)) y=(px(bottom + 18.0)) text-anchor="end" { "CPU" }
        }
        (as_table(&rows))
    }
}

fn bar(row: &Row<'_>, top: f64, height: f64, scale: &dyn Fn(f64) -> f64) -> Markup {
    let mut x = LEFT;
    let pieces: Vec<(CauseFamily, f64, f64)> = CauseFamily::ALL
        .into_iter()
        .zip(row.families)
        .filter(|(_, ns_per_s)| *ns_per_s > 0.0)
        .map(|(family, ns_per_s)| {
            let start = x;
            x += scale(ns_per_s);
            (family, start, ns_per_s)
        })
        .collect();
    let share = |ns_per_s: f64| percent(ns_per_s * 100.0 / row.total().max(f64::MIN_POSITIVE));
    html! {
        g {
            text class="row-label" x=(px(LEFT - 10.0)) y=(px(top + height / 2.0 + 4.0)) text-anchor="end" { (row.cpu) }
            @for (family, start, ns_per_s) in &pieces {
                rect class={ "f-" (family.class()) } x=(px(*start)) y=(px(top + 1.5)) width=(px(scale(*ns_per_s).max(0.1))) height=(px(height - 3.0)) {
                    title {
                        "CPU " (row.cpu) ", " (family.word()) ": " (micro(&duration_fine(*ns_per_s))) " per second, " (micro(&share(*ns_per_s)))
                        (names(row, *family))
                    }
                }
            }
            text class="row-total" x=(px(x + 8.0)) y=(px(top + height / 2.0 + 4.0)) { (micro(&duration_fine(row.total()))) "/s" }
        }
    }
}

/// Returns the causes of a family on a CPU, one per line.
fn names(row: &Row<'_>, family: CauseFamily) -> String {
    let own = row.causes.totals.iter().filter(|total| CauseFamily::of(&total.cause) == family);
    own.take(CAUSES_IN_TITLE_MAX)
        .map(|total| {
            let each = duration_fine(total.ns_total as f64 / row.runtime_s);
            format!("\n{}: {}/s", clean(&total.cause.label()), micro(&each))
        })
        .collect()
}

/// Builds the same figures as a table.
fn as_table(rows: &[Row<'_>]) -> Markup {
    let used = CauseFamily::ALL.into_iter().filter(|of| rows.iter().any(|row| row.of(*of) > 0.0));
    let used: Vec<CauseFamily> = used.collect();
    let figure =
        |ns_per_s: f64| if ns_per_s > 0.0 { micro(&duration_fine(ns_per_s)) } else { "0".to_owned() };
    let mut heads = vec!["CPU"];
    heads.extend(used.iter().map(|family| family.word()));
    heads.push("All, per second");
    html! {
        details class="as-text" {
            summary { "Show as table" }
            (data_table("Causes per CPU", "numbers", &heads, &html! {
                @for row in rows {
                    tr {
                        th scope="row" { (row.cpu) }
                        @for family in &used { td { (figure(row.of(*family))) } }
                        td class="strong" { (figure(row.total())) }
                    }
                }
            }))
        }
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides the scale into about six, and the scale's end.
fn ticks(longest: f64) -> (f64, f64) {
    if !longest.is_finite() || longest <= 0.0 {
        return (1.0, 1.0);
    }
    let rough = longest / 6.0;
    let decade = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|of| of * decade).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(decade * 10.0);
    (step, (longest / step).ceil().max(1.0) * step)
}

fn marks(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0..=20u32).map(move |at| f64::from(at) * step).take_while(move |at| *at <= end * 1.001)
}

/// Formats a whole number in a suitable unit: "20 us", not "20.0 us".
fn axis_word(ns: f64) -> String {
    let text = duration_fine(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_on_a_tick() {
        for (longest, step, end) in [(4_321.0, 1_000.0, 5_000.0), (0.7, 0.2, 0.8), (100.0, 20.0, 100.0)] {
            let found = ticks(longest);
            assert!((found.0 - step).abs() < 1e-9 && (found.1 - end).abs() < 1e-9, "{longest}: {found:?}");
        }
        assert_eq!(ticks(f64::NAN), (1.0, 1.0));
        assert_eq!(marks(20.0, 100.0).count(), 6);
        assert_eq!((axis_word(20_000.0), axis_word(0.5)), ("20 us".to_owned(), "0.5 ns".to_owned()));
    }
}
