//! The table of CPUs.

use super::{DisplayOptions, Sort, dim, rule, safe};
use crate::watch::{
    cpu_row::{CpuRow, State, per_second},
    watcher::Watch,
};
use lowlat_jitter::watch::SampledCpu;
use lowlat_text::{text, units};
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use std::cmp::Reverse;

/// Width of the longest verdict.
const STATE_WIDTH: usize = 11;
const GAP: usize = 2;
/// Ticks per second of the kernel's accounting (USER_HZ, the same on all architectures that lowlat supports).
const STEAL_TICKS_PER_S: f64 = 100.0;

/// The heading, the head of the table, and `count` CPUs.
pub(super) fn lines(watch: &Watch, view: &DisplayOptions, width: usize, count: usize) -> Vec<Line<'static>> {
    let mut rows: Vec<&CpuRow> = watch.rows.iter().collect();
    sort(&mut rows, view.sort);
    let first = view.scroll.min(rows.len().saturating_sub(count));
    let mut note: Vec<String> =
        watch.states().iter().map(|(state, count)| format!("{count} {}", state.word())).collect();
    if rows.len() > count {
        note.push(format!("rows {}-{} of {}", first + 1, first + count, rows.len()));
    }
    let columns = CpuColumns::of(watch, width);
    let mut lines = vec![rule("CPUs", &note.join(", "), width), columns.head()];
    let shown = rows.into_iter().skip(first).take(count);
    lines.extend(shown.map(|row| columns.row(row, watch.last.interval.elapsed_ns)));
    if watch.rows.is_empty() {
        lines.push(Line::default());
    }
    lines
}

fn sort(rows: &mut [&CpuRow], sort: Sort) {
    let rate = |row: &CpuRow| match &row.sampled {
        Some(sampled) => sampled.count,
        None => row.interrupts.unwrap_or(0) + row.softirqs.unwrap_or(0),
    };
    match sort {
        Sort::Cpu => {}
        Sort::State => rows.sort_by_key(|row| (row.state, Reverse(rate(row)))),
        Sort::Rate => rows.sort_by_key(|row| Reverse(rate(row))),
    }
}

/// Heads and widths of the columns of figures, and the space for causes.
struct CpuColumns {
    cpu_width: usize,
    heads: &'static [(&'static str, usize)],
    causes_head: &'static str,
    causes_width: usize,
}

const COUNTED: [(&str, usize); 3] = [("irqs/s", 7), ("softirqs/s", 10), ("switches/s", 10)];
const SAMPLED: [(&str, usize); 3] = [("count/s", 7), ("lost time", 9), ("longest", 8)];

impl CpuColumns {
    fn of(watch: &Watch, width: usize) -> Self {
        let digits = watch.subject.cpus.highest().map_or(1, |cpu| cpu.to_string().len());
        let cpu_width = digits.max(3);
        let heads: &[(&str, usize)] = if watch.subject.is_sampling { &SAMPLED } else { &COUNTED };
        let figures: usize = heads.iter().map(|(_, width)| GAP + width).sum();
        let used = cpu_width + GAP + STATE_WIDTH + figures + GAP;
        let causes_width = width.saturating_sub(used);
        let is_sampling = watch.subject.is_sampling;
        let long = if is_sampling { "main causes and their time" } else { "most frequent, per second" };
        let causes_head = [long, "causes"].into_iter().find(|head| head.len() <= causes_width).unwrap_or("");
        Self { cpu_width, heads, causes_head, causes_width }
    }

    fn head(&self) -> Line<'static> {
        let figures: String = self.heads.iter().map(|(head, width)| format!("  {head:>width$}")).collect();
        let start = format!("{:>1$}  {2:<STATE_WIDTH$}", "CPU", self.cpu_width, "state");
        Line::from(dim(&format!("{start}{figures}  {}", self.causes_head)))
    }

    fn row(&self, row: &CpuRow, elapsed_ns: u64) -> Line<'static> {
        let figures = match &row.sampled {
            Some(sampled) => sampled_figures(sampled, elapsed_ns),
            None => [row.interrupts, row.softirqs, row.switches].map(|count| {
                count.map_or("-".to_owned(), |count| units::rate(per_second(count, elapsed_ns)))
            }),
        };
        let figures: String = figures
            .iter()
            .zip(self.heads)
            .map(|(figure, (_, width))| format!("  {figure:>width$}"))
            .collect();
        let causes = match &row.sampled {
            Some(sampled) => sampled_causes(sampled),
            None => counted_causes(row, elapsed_ns),
        };
        let (causes, is_cut) = fitted(&causes, self.causes_width);
        let mut spans = vec![
            Span::raw(format!("{:>1$}  ", row.cpu, self.cpu_width)),
            Span::styled(format!("{:<STATE_WIDTH$}", row.state.word()), row.state.style()),
            Span::raw(format!("{figures}  {causes}")),
        ];
        spans.extend(is_cut.map(|rest| dim(&rest)));
        Line::from(spans)
    }
}

fn sampled_figures(sampled: &SampledCpu, elapsed_ns: u64) -> [String; 3] {
    let share = if elapsed_ns == 0 { 0.0 } else { sampled.ns_total as f64 * 100.0 / elapsed_ns as f64 };
    let longest = if sampled.count == 0 { "-".to_owned() } else { units::duration(sampled.ns_max) };
    [units::rate(per_second(sampled.count, elapsed_ns)), units::percent(share), longest]
}

/// Each cause with the time that it took per second.
fn sampled_causes(sampled: &SampledCpu) -> Vec<String> {
    let lost = (sampled.lost_count > 0).then(|| format!("{} not read", units::count(sampled.lost_count)));
    let causes = sampled.causes.iter();
    let causes = causes.map(|of| format!("{} {}", of.cause.short_label(), units::duration(of.ns_total)));
    lost.into_iter().chain(causes).collect()
}

/// Each cause with its rate, after the share that the hypervisor took.
fn counted_causes(row: &CpuRow, elapsed_ns: u64) -> Vec<String> {
    let mut causes = Vec::new();
    let steal = per_second(row.steal_ticks.unwrap_or(0), elapsed_ns) * 100.0 / STEAL_TICKS_PER_S;
    if row.steal_ticks.is_none() {
        causes.push("steal unknown".to_owned());
    } else if steal > 0.0 {
        causes.push(format!("steal {steal:.0} %"));
    }
    causes.extend(row.causes.iter().map(|delta| {
        // The column heads show that these are rates.
        let label = delta.cause.label();
        let label = label.strip_prefix("softirq ").unwrap_or(&label).to_owned();
        format!("{label} {}", units::rate(per_second(delta.count, elapsed_ns)))
    }));
    causes
}

/// Narrowest column of causes, and of a cause beside the number of the others.
const CAUSE_WIDTH_MIN: usize = 8;

/// As many whole causes as fit, and the number of the others.
fn fitted(causes: &[String], width: usize) -> (String, Option<String>) {
    let Some(first) = causes.first() else { return (String::new(), None) };
    let rest = |shown: usize| {
        if shown == causes.len() { String::new() } else { format!(", {} more", causes.len() - shown) }
    };
    if width < CAUSE_WIDTH_MIN {
        return (String::new(), None);
    }
    if width < CAUSE_WIDTH_MIN + rest(1).len() {
        return (text::cut(&safe(first), width), None);
    }
    let mut line = text::cut(&safe(first), width.saturating_sub(rest(1).len()));
    let mut shown = 1;
    for cause in causes.iter().skip(1) {
        let longer = format!("{line}, {}", safe(cause));
        if longer.chars().count() + rest(shown + 1).len() > width {
            break;
        }
        (line, shown) = (longer, shown + 1);
    }
    let rest = rest(shown);
    (line, (!rest.is_empty()).then_some(rest))
}

impl State {
    fn style(self) -> Style {
        match self {
            Self::Intruder => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Self::Ticking | Self::Interrupted | Self::Unknown => Style::new().fg(Color::Yellow),
            Self::Quiet => Style::new().fg(Color::Green),
            Self::Shared => Style::new().add_modifier(Modifier::DIM),
        }
    }
}
