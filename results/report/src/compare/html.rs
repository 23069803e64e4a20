//! Page of the comparison of two measurements.

use super::explained;
use crate::compare::comparison::{
    amount, change_text, class, difference_text, harm_word, headline, interval, lost_per_s, other_changes,
    percentile_rows, quantity_name, quantity_unit, ratio, rows, run_text,
};
use lowlat_cores_report::{changes_headline, changes_html};
use lowlat_host::statistics::RateInterval;
use lowlat_jitter_report::html::STYLE;
use lowlat_jitter_report::html::causes::cause;
use lowlat_results::compare::{CauseComparison, Comparison, CpuComparison, HarmVerdict, RateRatio};
use lowlat_text::page::svg::{LogScale, px};
use lowlat_text::page::{
    Section, data_table, facts, heads, micro, section as page_section, table_below, tile,
};
use lowlat_text::units::{clean, count, duration, plural, rate};
use maud::{Markup, html};

/// Highest numbers of rows in tables.
const CAUSES_MAX: usize = 60;
const CPUS_MAX: usize = 256;
const CHANGES_MAX: usize = 100;
/// Width of the picture of an interval.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 22.0;
/// Highest and lowest number of decades on each side of no change.
const DECADES_MAX: i32 = 4;
const DECADES_MIN: i32 = 1;

/// Builds the sections of a comparison.
pub fn sections(comparison: &Comparison) -> Vec<Section> {
    let scale = scale(comparison);
    let mut sections: Vec<Section> =
        vec![Section::new("summary", "Summary", summary(comparison)).with_style(STYLE)];
    sections
        .extend(explained::section(comparison).map(|body| Section::new("explained", "Explanation", body)));
    if !comparison.causes.is_empty() {
        sections.push(Section::new("causes", "Causes", causes(comparison, &scale)));
    }
    if comparison.by_cpu.len() > 1 {
        sections.push(Section::new("cpus", "CPUs", cpus(comparison, &scale)));
    }
    if let Some(of) = &comparison.workloads {
        let lead = html! { (micro(&changes_headline(of))) "." };
        let body = page_section("workloads", "Workloads", &lead, &changes_html(of));
        sections.push(Section::new("workloads", "Workloads", body));
    }
    sections.push(Section::new("changes", "Changes", changes(comparison)));
    sections.push(Section::new("doubts", "Doubts", doubts(comparison)));
    sections
}

/// Builds the footer: how to read the intervals.
pub fn footer() -> Markup {
    html! {
        footer {
            p class="small" {
                "Rates are per second and CPU. Ratios divide the rate after by the rate before. Their 95 % interval is wider if "
                "interruptions come in bursts. If the interval contains 1, no difference is shown; this does not prove that there is none. "
                "Intervals of differences of percentiles come from 1,000 resamples of the histograms. This page loads no external resources."
            }
        }
    }
}

fn summary(comparison: &Comparison) -> Markup {
    let runs =
        |of: &[lowlat_results::compare::RunSummary]| of.iter().map(run_text).collect::<Vec<_>>().join("; ");
    let is_measured = comparison.has_rates();
    let compared = if !is_measured {
        String::new()
    } else if comparison.cpus.is_empty() {
        "no CPU was measured on both sides; all CPUs of each side are compared".to_owned()
    } else {
        lowlat_jitter_report::causes::words::cpu_list(&comparison.cpus, 120)
    };
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            p class="eyebrow" { @if is_measured { "Interruptions of user threads, before and after" } @else if comparison.workloads.is_some() { "Workloads, before and after" } @else { "Settings, before and after" } }
            @if is_measured { h1 id="summary-title" class={ "r-" (harm_word(comparison.harm.verdict).1) } { (verdict_title(comparison.harm.verdict)) } }
            @else { h1 id="summary-title" { (plural(comparison.setting_changes.len(), "setting")) " differ" @if comparison.setting_changes.len() == 1 { "s" } } }
            p class="verdict" { (micro(&headline(comparison).replace(" -> ", " → "))) }
            (facts([("Before", micro(&runs(&comparison.before))), ("After", micro(&runs(&comparison.after))), ("CPUs", compared)]))
            @if is_measured { (harm(comparison)) (figures(comparison)) }
            (percentiles(comparison))
        }
    }
}

/// Builds the table of the quantities by which harm is judged.
fn harm(comparison: &Comparison) -> Markup {
    html! {
        div class="card flush figures" {
            (data_table("", "numbers", &["<Judged", "Before", "After", "95 % interval of difference", "<Result"], &html! {
                @for of in &comparison.harm.quantities {
                    @let (word, class) = harm_word(of.verdict);
                    tr {
                        th scope="row" class="left" { (micro(&format!("{}{}", quantity_name(of.quantity), quantity_unit(of.quantity)))) }
                        td { (micro(&amount(of.quantity, of.before))) } td { (micro(&amount(of.quantity, of.after))) }
                        td { (micro(&difference_text(of).replace('-', "−"))) }
                        td class="left shows" { b class={ "r-" (class) } { (word) } }
                    }
                }
            }))
        }
    }
}

/// Builds the figures of all compared CPUs.
fn figures(comparison: &Comparison) -> Markup {
    let of = &comparison.all;
    let longest = |ns: Option<u64>| ns.map_or_else(|| "none".to_owned(), |ns| micro(&duration(ns)));
    html! {
        div class="tiles" {
            (tile("Per second before", &per_s(of.before.rate), &interval_note(of.before.rate)))
            (tile("Per second after", &per_s(of.after.rate), &interval_note(of.after.rate)))
            (tile("Longest before", &longest(of.before.length_ns_max), &format!("of {}", plural(of.before.count, "interruption"))))
            (tile("Longest after", &longest(of.after.length_ns_max), &format!("of {}", plural(of.after.count, "interruption"))))
        }
        div class="card flush figures" {
            (data_table("", "numbers", &["<All compared CPUs", "Before", "After"], &html! {
                @for (label, before, after) in rows(comparison) {
                    tr { th scope="row" class="left" { (micro(&label)) } td { (micro(&before)) } td { (micro(&after)) } }
                }
            }))
        }
    }
}

/// Builds the table of percentiles with the intervals of their differences.
fn percentiles(comparison: &Comparison) -> Markup {
    let rows = percentile_rows(comparison);
    html! {
        @if !rows.is_empty() {
            div class="card flush figures" {
                (data_table("Percentiles before and after", "numbers", &["<Percentile", "Before", "After", "95 % interval of difference", "<Result"], &html! {
                    @for row in rows {
                        tr {
                            th scope="row" class="left" { (row.label) } td { (micro(&row.before)) } td { (micro(&row.after)) }
                            td { (micro(&row.interval.replace('-', "−"))) }
                            td class="left shows" { b class={ "r-" (class(row.verdict.is_more())) } { (row.verdict.word()) } }
                        }
                    }
                }))
            }
        }
    }
}

fn verdict_title(verdict: HarmVerdict) -> &'static str {
    match verdict {
        HarmVerdict::Worse => "Worse after",
        HarmVerdict::Better => "Better after",
        HarmVerdict::Traded => "Traded",
        HarmVerdict::NoDifferenceShown => "No difference shown",
        HarmVerdict::SurroundingsDiffered => "No verdict: other load",
        HarmVerdict::TooShort => "Too short for a verdict",
    }
}

fn per_s(of: Option<RateInterval>) -> String {
    of.map_or_else(|| "–".to_owned(), |of| rate(of.per_s))
}

fn interval_note(of: Option<RateInterval>) -> String {
    of.map_or_else(String::new, |of| {
        format!("95 % interval {} to {}", rate(of.per_s_low), rate(of.per_s_high))
    })
}

/// Returns one scale for every interval of the page, symmetric around no change.
pub fn scale(comparison: &Comparison) -> LogScale {
    let ratios = comparison
        .by_cpu
        .iter()
        .map(|of| &of.compared.rate)
        .chain(comparison.causes.iter().map(|of| &of.rate))
        .chain([&comparison.all.rate]);
    let ends = ratios.flat_map(|of| [Some(of.low), of.high]).flatten();
    let far =
        ends.filter(|end| end.is_finite() && *end > 0.0).map(|end| end.log10().abs()).fold(0.0, f64::max);
    let decades =
        (DECADES_MIN..=DECADES_MAX).find(|decades| f64::from(*decades) >= far).unwrap_or(DECADES_MAX);
    LogScale { low: -decades, high: decades, start: 8.0, end: WIDTH - 8.0 }
}

/// Draws an interval on the scale; an end outside it has an arrow.
pub fn interval_picture(of: &RateRatio, class: &str, scale: &LogScale) -> Markup {
    let (low, high) = (of.low.max(0.0), of.high.unwrap_or(f64::INFINITY));
    let has_interval = of.ratio.is_some() || of.low > 0.0;
    let (start, end) = (scale.at(low), if high.is_finite() { scale.at(high) } else { scale.end });
    let middle = HEIGHT / 2.0;
    let one = scale.at(1.0);
    html! {
        svg class={ "ratio r-" (class) } viewBox={ "0 0 " (px(WIDTH)) " " (px(HEIGHT)) } role="img" aria-label={ "ratio " (ratio(of)) ", 95 % interval " (interval(of)) } {
            @for (_, at) in scale.decades() { line class="grid" x1=(px(at)) x2=(px(at)) y1="0" y2=(px(HEIGHT)) {} }
            line class="one" x1=(px(one)) x2=(px(one)) y1="0" y2=(px(HEIGHT)) {}
            @if has_interval {
                line class="whisker" x1=(px(start)) x2=(px(end.max(start + 1.0))) y1=(px(middle)) y2=(px(middle)) {}
                @if low.log10() < f64::from(scale.low) { path class="arrow" d={ "M" (px(start - 6.0)) " " (px(middle)) "l7 -4v8z" } {} }
                @if !high.is_finite() || high.log10() > f64::from(scale.high) { path class="arrow" d={ "M" (px(end + 6.0)) " " (px(middle)) "l-7 -4v8z" } {} }
                @if let Some(point) = of.ratio.filter(|point| *point > 0.0) { circle cx=(px(scale.at(point))) cy=(px(middle)) r="3.6" {} }
            }
        }
    }
}

/// Draws the scale above the intervals.
pub fn axis(scale: &LogScale) -> Markup {
    html! {
        svg class="ratio" viewBox={ "0 0 " (px(WIDTH)) " 16" } aria-hidden="true" {
            // On a long scale, only every other decade has room for a label.
            @for (power, at) in scale.decades().filter(|(power, _)| scale.high <= 2 || (power - scale.high) % 2 == 0) {
                @let anchor = if power == scale.low { "start" } else if power == scale.high { "end" } else { "middle" };
                @let at = if power == scale.low { 0.0 } else if power == scale.high { WIDTH } else { at };
                text x=(px(at)) y="12" text-anchor=(anchor) { (factor(power)) }
            }
        }
    }
}

/// Formats a power of ten: "1/10", "1", "100".
fn factor(power: i32) -> String {
    let of = count(10u64.pow(power.unsigned_abs()));
    if power < 0 { format!("1/{of}") } else { of }
}

/// Builds the heads of a table with pictures of ratios.
pub fn compared(first: &[&str], scale: Option<&LogScale>) -> Markup {
    html! {
        (heads(first))
        th scope="col" class="left" { span class="vh" { "Ratio" } @if let Some(scale) = scale { (axis(scale)) } }
        (heads(&["<Result"]))
    }
}

fn causes(comparison: &Comparison, scale: &LogScale) -> Markup {
    let lead = html! { "Rate of each cause and the time that it takes, per second and CPU. Left of the line, a cause is rarer than before." };
    let all = &comparison.causes;
    let heads = compared(&["<Cause", "Before", "After", "Lost before", "Lost after"], Some(scale));
    let body = html! {
        div class="card flush" {
            (table_below("Causes before and after", "numbers compare", &heads, &html! {
                @for of in all.iter().take(CAUSES_MAX) { (cause_row(of, scale)) }
            }))
            @if all.len() > CAUSES_MAX { p class="empty" { (plural(all.len() - CAUSES_MAX, "smaller cause")) " are left out." } }
        }
    };
    page_section("causes", "Causes", &lead, &body)
}

fn cause_row(of: &CauseComparison, scale: &LogScale) -> Markup {
    let class = class(of.verdict.is_more());
    html! {
        tr {
            th scope="row" class="left" { (cause(&of.cause)) }
            td { (per_s(of.before.rate)) }
            td { (per_s(of.after.rate)) }
            td { (micro(&lost_per_s(of.before.lost_ns_per_s).replace('-', "–"))) }
            td { (micro(&lost_per_s(of.after.lost_ns_per_s).replace('-', "–"))) }
            td class="left" { (interval_picture(&of.rate, class, scale)) }
            td class="left shows" {
                b class={ "r-" (class) } { (of.verdict.word()) }
                @for setting in &of.changed_settings { " " code { (clean(setting)) } }
                @if !of.caveat.is_empty() { span class="why" { (micro(&clean(&of.caveat))) } }
            }
        }
    }
}

fn cpus(comparison: &Comparison, scale: &LogScale) -> Markup {
    let all = &comparison.by_cpu;
    let lead = html! { "Interruptions per second of each CPU that was measured on both sides." };
    let heads = compared(&["CPU", "Before", "After", "Longest before", "Longest after"], Some(scale));
    let class = if all.len() > 32 { "numbers compare tall" } else { "numbers compare" };
    let body = html! {
        div class="card flush" {
            (table_below("CPUs before and after", class, &heads, &html! {
                @for of in all.iter().take(CPUS_MAX) { (cpu_row(of, scale)) }
            }))
            @if all.len() > CPUS_MAX { p class="empty" { (plural(all.len() - CPUS_MAX, "more CPU")) " are left out." } }
        }
    };
    page_section("cpus", "CPUs", &lead, &body)
}

fn cpu_row(of: &CpuComparison, scale: &LogScale) -> Markup {
    let longest = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| micro(&duration(ns)));
    let class = class(of.compared.rate.verdict.is_more());
    html! {
        tr {
            th scope="row" { (of.cpu) }
            td { (per_s(of.compared.before.rate)) }
            td { (per_s(of.compared.after.rate)) }
            td { (longest(of.compared.before.length_ns_max)) }
            td { (longest(of.compared.after.length_ns_max)) }
            td class="left" { (interval_picture(&of.compared.rate, class, scale)) }
            td class="left shows" { b class={ "r-" (class) } { (of.compared.rate.verdict.word()) } }
        }
    }
}

fn changes(comparison: &Comparison) -> Markup {
    let (settings, facts) = (other_changes(comparison), &comparison.differences);
    let lead = html! { "Differences of the host between the last run before and the last run after." };
    let left =
        (facts.len().saturating_sub(CHANGES_MAX) as u64).saturating_add(comparison.differences_cut_count);
    let body = html! {
        @if comparison.setting_changes.is_empty() && facts.is_empty() { p class="empty" { "Nothing that lowlat reads has changed, or the documents contain no host." } }
        @if !settings.is_empty() {
            div class="card" {
                h3 { @if settings.len() < comparison.setting_changes.len() { "Other settings" } @else { "Settings" } }
                dl class="notes" {
                    @for change in settings.iter().take(CHANGES_MAX) { dt { code { (clean(&change.id)) } } dd { (micro(&change_text(change).replace(" -> ", " → "))) } }
                }
                @if settings.len() > CHANGES_MAX { p class="muted" { (settings.len() - CHANGES_MAX) " more changed." } }
            }
        }
        @if !facts.is_empty() {
            div class="card" {
                h3 { "Other changes" }
                dl class="notes" {
                    @for fact in facts.iter().take(CHANGES_MAX) {
                        dt { (clean(&fact.path)) }
                        dd { (value(fact.a.as_deref())) " → " (value(fact.b.as_deref())) }
                    }
                }
                @if left > 0 { p class="muted" { (count(left)) " more changed." } }
            }
        }
    };
    page_section("changes", "Changes", &lead, &body)
}

fn value(of: Option<&str>) -> String {
    of.map_or_else(|| "(nothing)".to_owned(), clean)
}

fn doubts(comparison: &Comparison) -> Markup {
    let lead = html! { "Limits of this comparison." };
    let body = html! {
        @if comparison.doubts.is_empty() {
            p class="empty" { "None." }
        } @else {
            ul class="warnings" { @for doubt in &comparison.doubts { li { (micro(&clean(doubt))) } } }
        }
    };
    page_section("doubts", "Doubts", &lead, &body)
}
