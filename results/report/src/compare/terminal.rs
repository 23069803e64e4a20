//! Comparison of two measurements, and gates, as terminal text.

use crate::compare::comparison::{
    amount, change_of, change_text, difference_text, explained_text, harm_word, headline, interval,
    lost_per_s, other_changes, percentile_rows, quantity_name, rows, run_text, unexplained_text,
};
use anstyle::Style;
use lowlat_cores_report::{changes_headline, changes_table};
use lowlat_host::statistics::RateInterval;
use lowlat_jitter_report::causes::label_within;
use lowlat_jitter_report::causes::words::cpu_list;
use lowlat_jitter_report::terminal::{add_dim, add_judged, add_note};
use lowlat_results::compare::{CauseComparison, Comparison, CpuComparison, HarmVerdict, RateVerdict};
use lowlat_text::columns::Table;
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_field, add_heading, add_painted, add_wrapped, column_lines, cut,
    paint, usable, with_dim_head,
};
use lowlat_text::units::{clean, count, duration, plural, rate};

/// Highest number of causes, CPUs, changed settings and facts shown.
const CAUSES_MAX: usize = 20;
const CPUS_MAX: usize = 16;
const CHANGES_MAX: usize = 20;
/// Highest number of causes shown of one explanation.
const EXPLAINED_CAUSES_MAX: usize = 4;

/// Formats a comparison for a terminal of this width.
pub fn comparison_text(comparison: &Comparison, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let style = harm_style(comparison.harm.verdict);
    add_painted(&mut out, style.bold(), &headline(comparison), 0, width);
    for (side, runs) in [("before", &comparison.before), ("after", &comparison.after)] {
        for run in runs {
            add_field(&mut out, side, &run_text(run), 8, width);
        }
    }
    if comparison.has_rates() {
        add_harm(&mut out, comparison, width);
        add_figures(&mut out, comparison, width);
    }
    add_percentiles(&mut out, comparison, width);
    if let Some(workloads) = &comparison.workloads {
        add_heading(&mut out, "Workloads");
        // Without interruptions it is the headline.
        if comparison.has_rates() {
            add_wrapped(&mut out, &format!("{}.", changes_headline(workloads)), 0, width);
        }
        out.push_str(&changes_table(workloads, width));
    }
    add_explained(&mut out, comparison, width);
    add_causes(&mut out, &comparison.causes, width);
    add_cpus(&mut out, &comparison.by_cpu, width);
    add_changes(&mut out, comparison, width);
    if !comparison.doubts.is_empty() {
        add_heading(&mut out, "Limits of this comparison");
        for doubt in &comparison.doubts {
            add_field(&mut out, "-", &clean(doubt), 2, width);
        }
    }
    out
}

fn harm_style(verdict: HarmVerdict) -> Style {
    match verdict {
        HarmVerdict::Better => GREEN,
        HarmVerdict::Worse => RED,
        HarmVerdict::Traded | HarmVerdict::SurroundingsDiffered => YELLOW,
        HarmVerdict::NoDifferenceShown | HarmVerdict::TooShort => Style::new(),
    }
}

/// Adds the quantities by which harm is judged.
fn add_harm(out: &mut String, comparison: &Comparison, width: usize) {
    let all = &comparison.harm.quantities;
    if all.is_empty() {
        return;
    }
    let table = Table::of(all)
        .words("judged", 0, |of| quantity_name(of.quantity).to_owned())
        .figures("before", 0, |of| amount(of.quantity, of.before))
        .figures("after", 0, |of| amount(of.quantity, of.after))
        .figures("95 % of difference", 1, difference_text)
        .words("", 0, |of| harm_word(of.verdict).0.to_owned());
    out.push('\n');
    let ends = all.iter().map(|of| (harm_word(of.verdict).0, harm_style(of.verdict)));
    add_judged(out, &table.lines(width), ends, |_, _| ());
}

/// The style of a difference; `none` if none is shown.
fn style(is_more: Option<bool>, none: Style) -> Style {
    match is_more {
        Some(true) => RED,
        Some(false) => GREEN,
        None => none,
    }
}

fn add_figures(out: &mut String, comparison: &Comparison, width: usize) {
    out.push('\n');
    let head = (String::new(), "before".to_owned(), "after".to_owned());
    let rows =
        std::iter::once(head).chain(rows(comparison)).map(|(label, before, after)| [label, before, after]);
    let lines = column_lines(&rows.map(Vec::from).collect::<Vec<_>>(), &[1, 2], 2);
    out.push_str(&with_dim_head(lines.iter().map(|line| cut(line, width))));
}

/// Adds the percentiles with the intervals of their differences.
fn add_percentiles(out: &mut String, comparison: &Comparison, width: usize) {
    let rows = percentile_rows(comparison);
    if rows.is_empty() {
        return;
    }
    let table = Table::of(&rows)
        .words("", 0, |row| row.label.clone())
        .figures("before", 0, |row| row.before.clone())
        .figures("after", 0, |row| row.after.clone())
        .figures("95 % of difference", 1, |row| row.interval.clone())
        .words("", 0, |row| row.verdict.word().to_owned());
    add_heading(out, "Percentiles");
    let ends = rows.iter().map(|row| (row.verdict.word(), style(row.verdict.is_more(), DIM)));
    add_judged(out, &table.lines(width), ends, |_, _| ());
}

/// Adds the settings that explain the difference, the best explanation first.
fn add_explained(out: &mut String, comparison: &Comparison, width: usize) {
    let sentence = unexplained_text(comparison);
    let explaining: Vec<_> = comparison.explanations.iter().filter(|of| of.explains()).collect();
    if sentence.is_some() || !explaining.is_empty() {
        add_heading(out, "Settings that explain the difference");
    }
    if let Some(sentence) = sentence {
        return add_wrapped(out, sentence, 2, width);
    }
    for (at, of) in explaining.iter().take(CHANGES_MAX).enumerate() {
        let id = paint(BOLD, &clean(&of.id));
        let follows = if of.follows.is_empty() {
            String::new()
        } else {
            paint(DIM, &format!("  follows from {}", clean(&of.follows)))
        };
        out.push_str(&format!("  {:>2}. {id}{follows}\n", at + 1));
        if let Some(change) = change_of(comparison, &of.id) {
            add_wrapped(out, &change_text(change), 6, width);
        }
        add_wrapped(out, &format!("{}, on CPUs {}:", explained_text(of), cpu_list(&of.cpus, 40)), 6, width);
        let shown = of.causes.iter().take(EXPLAINED_CAUSES_MAX).map(|cause| label_within(cause, 44));
        let rest = of.causes.len().saturating_sub(EXPLAINED_CAUSES_MAX);
        let more = (rest > 0).then(|| format!("{} more", count(rest as u64)));
        let names = shown.chain(more).collect::<Vec<_>>().join(", ");
        add_painted(out, DIM, &clean(&names), 6, width);
    }
}

/// Adds a row for each cause; the verdict is the last word and has the colour.
fn add_causes(out: &mut String, causes: &[CauseComparison], width: usize) {
    if causes.is_empty() {
        return;
    }
    add_heading(out, "Causes, per second and CPU");
    let shown = causes.get(..CAUSES_MAX).unwrap_or(causes);
    let name_width = if width >= 100 { 44 } else { 26 };
    let table = Table::of(shown)
        .words("cause", 0, |of| label_within(&of.cause, name_width))
        .figures("lost before", 0, |of| lost_per_s(of.before.lost_ns_per_s))
        .figures("after", 0, |of| lost_per_s(of.after.lost_ns_per_s))
        .figures("rate before", 1, |of| per_s(of.before.rate))
        .figures("after", 1, |of| per_s(of.after.rate))
        .figures("95 % interval of ratio", 2, |of| interval(&of.rate))
        .words("", 0, |of| of.verdict.word().to_owned());
    let ends = shown.iter().map(|of| (of.verdict.word(), style(of.verdict.is_more(), DIM)));
    add_judged(out, &table.lines(width), ends, |out, at| {
        let Some(of) = shown.get(at) else { return };
        if !of.changed_settings.is_empty() {
            add_note(out, &format!("changed: {}", of.changed_settings.join(", ")), width);
        }
        add_note(out, &of.caveat, width);
    });
    if causes.len() > shown.len() {
        add_dim(out, &format!("  and {}", plural(causes.len() - shown.len(), "smaller cause")), width);
    }
}

fn per_s(of: Option<RateInterval>) -> Option<String> {
    of.map(|of| rate(of.per_s))
}

/// Adds the CPUs, those with a difference first.
fn add_cpus(out: &mut String, cpus: &[CpuComparison], width: usize) {
    if cpus.len() < 2 {
        return;
    }
    let mut shown: Vec<&CpuComparison> = cpus.iter().collect();
    if shown.len() > CPUS_MAX {
        let is_same = |of: &CpuComparison| of.compared.rate.verdict == RateVerdict::NoDifferenceShown;
        shown.sort_by_key(|of| (is_same(of), std::cmp::Reverse(of.compared.after.count), of.cpu));
        shown.truncate(CPUS_MAX);
        shown.sort_by_key(|of| of.cpu);
    }
    add_heading(out, "CPUs, per second");
    let table = Table::of(&shown)
        .figures("CPU", 0, |of| of.cpu.to_string())
        .figures("before", 0, |of| per_s(of.compared.before.rate))
        .figures("after", 0, |of| per_s(of.compared.after.rate))
        .figures("95 % interval of ratio", 1, |of| interval(&of.compared.rate))
        .figures("max before", 2, |of| of.compared.before.length_ns_max.map(duration))
        .figures("max after", 2, |of| of.compared.after.length_ns_max.map(duration))
        .words("", 0, |of| of.compared.rate.verdict.word().to_owned());
    let ends = shown
        .iter()
        .map(|of| of.compared.rate.verdict)
        .map(|of| (of.word(), style(of.is_more(), Style::new())));
    add_judged(out, &table.lines(width), ends, |_, _| ());
    if cpus.len() > shown.len() {
        add_dim(out, &format!("  and {} more", plural(cpus.len() - shown.len(), "CPU")), width);
    }
}

fn add_changes(out: &mut String, comparison: &Comparison, width: usize) {
    let changes = other_changes(comparison);
    if !changes.is_empty() {
        let has_explained = changes.len() < comparison.setting_changes.len();
        add_heading(out, if has_explained { "Other settings that differ" } else { "Settings that differ" });
        for change in changes.iter().take(CHANGES_MAX) {
            out.push_str(&format!("  {}\n", paint(BOLD, &clean(&change.id))));
            add_wrapped(out, &change_text(change), 6, width);
        }
        if changes.len() > CHANGES_MAX {
            add_dim(out, &format!("  and {} more", changes.len() - CHANGES_MAX), width);
        }
    }
    let facts = &comparison.differences;
    if facts.is_empty() {
        return;
    }
    add_heading(out, "Other changes of the host");
    for fact in facts.iter().take(CHANGES_MAX) {
        let value = |of: &Option<String>| of.as_deref().map_or_else(|| "(nothing)".to_owned(), clean);
        let text = format!("{}: {} -> {}", clean(&fact.path), value(&fact.a), value(&fact.b));
        add_field(out, "-", &text, 2, width);
    }
    let left =
        (facts.len().saturating_sub(CHANGES_MAX) as u64).saturating_add(comparison.differences_cut_count);
    if left > 0 {
        add_dim(out, &format!("  and {} more", count(left)), width);
    }
}
