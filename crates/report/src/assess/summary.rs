//! The end of `assess`: the verdict, the worst findings, jitter per CPU.

use crate::audit::grouping::Tally;
use crate::audit::verdict_style;
use crate::host::cpu_parts::{CHOSEN_NOTE, CpuPart, CpuParts};
use crate::host::line::title_and_cpus;
use crate::jitter::causes::words;
use crate::jitter::figures::{CpuFigures, Jitter, Longest};
use crate::shared::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_field, add_heading, add_wrapped, columns, paint, usable, wrap,
};
use crate::shared::units::{clean, count, duration, percent, plural, rate, span};
use lowlat_jitter::{CauseSource, JitterRecord};
use lowlat_result::ResultDocument;
use lowlat_settings::Finding;

/// Findings that are shown.
const FINDINGS_MAX: usize = 10;
/// Lines of a finding; `lowlat audit` has the rest.
const LINES_MAX: usize = 2;
/// Characters from which only the start of what was observed is shown.
const OBSERVED_CHARS_MAX: usize = 70;
/// CPUs that are shown; more are cut to those with the longest interruptions.
const CPUS_MAX: usize = 16;
/// Warnings that are shown.
const WARNINGS_MAX: usize = 8;

/// What a run found, for a terminal of this width.
pub fn summary(document: &ResultDocument, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_host(&mut out, document, width);
    add_verdict(&mut out, document, width);
    add_findings(&mut out, document, width);
    if let Some(jitter) = Jitter::of(document) {
        add_jitter(&mut out, document, &jitter, width);
    }
    add_warnings(&mut out, document, width);
    out
}

fn add_host(out: &mut String, document: &ResultDocument, width: usize) {
    let (host, cpus) = title_and_cpus(&document.snapshot);
    out.push_str(&paint(BOLD, &clean(&host)));
    out.push('\n');
    add_wrapped(out, &clean(&cpus), 0, width);
    let kernel = &document.snapshot.kernel;
    let mut parts =
        vec![kernel.release.known().map_or_else(|| "Kernel unknown".into(), |r| format!("Kernel {r}"))];
    parts.extend(kernel.distribution.known().cloned());
    parts.push(format!("profile {}", document.audit.profile));
    parts.push(document.started_at.clone());
    add_wrapped(out, &clean(&parts.join(", ")), 0, width);
}

fn add_verdict(out: &mut String, document: &ResultDocument, width: usize) {
    let tally = Tally::of(&document.audit);
    let score =
        document.audit.score.percent.map_or_else(|| "No score.".to_owned(), |p| format!("Score {p} of 100."));
    let style = if tally.faults == 0 { GREEN.bold() } else { RED };
    out.push('\n');
    out.push_str(&paint(style, &score));
    out.push('\n');
    let mut text = tally.sentence(&document.audit);
    if tally.reboots > 0 {
        text.push_str(&format!(" {} of the changes take a reboot.", tally.reboots));
    }
    if tally.unknown > 0 {
        text.push_str(&format!(" {} could not be told.", tally.unknown));
    }
    add_wrapped(out, &text, 0, width);
    if let Some(jitter) = &document.jitter {
        add_wrapped(out, &longest_sentence(document, jitter), 0, width);
    }
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The run was cut short; what was measured until then is shown."));
        out.push('\n');
    }
}

/// One sentence on the longest interruption of the run.
pub fn longest_sentence(document: &ResultDocument, jitter: &JitterRecord) -> String {
    let Some(longest) = Longest::of(jitter, &document.allocation) else {
        return "No CPU was measured.".to_owned();
    };
    let place = if longest.is_isolated { " on the CPUs chosen for isolation" } else { "" };
    match longest.length_ns {
        Some(ns) => format!("Longest interruption{place}: {} on CPU {}.", duration(ns), longest.cpu),
        None => format!("No interruption of {} or longer{place}.", duration(jitter.threshold_ns)),
    }
}

fn add_findings(out: &mut String, document: &ResultDocument, width: usize) {
    let mut faults: Vec<&Finding> = document.audit.faults().collect();
    faults.sort_by(|a, b| a.rank().cmp(&b.rank()));
    if faults.is_empty() {
        return;
    }
    let shown = faults.len().min(FINDINGS_MAX);
    let title = if shown == faults.len() {
        "What to change".to_owned()
    } else {
        format!("The {shown} worst settings")
    };
    add_heading(out, &title);
    for finding in faults.iter().take(FINDINGS_MAX) {
        add_finding(out, finding, width);
    }
    if faults.len() > shown {
        let more = format!("  and {} more: lowlat audit", faults.len() - shown);
        out.push_str(&paint(DIM, &more));
        out.push('\n');
    }
}

/// Two lines: verdict and id, then what is and what should be.
fn add_finding(out: &mut String, finding: &Finding, width: usize) {
    let word = format!("{:13}", finding.verdict.word());
    let reboot = if finding.needs_reboot { paint(DIM, "  (reboot)") } else { String::new() };
    out.push_str(&format!(
        "  {}{}{reboot}\n",
        paint(verdict_style(finding.verdict), &word),
        clean(&finding.id)
    ));
    let lines = wrap(&clean(&is_and_should(finding)), width.saturating_sub(15));
    for (at, line) in lines.iter().take(LINES_MAX).enumerate() {
        let dots = if at + 1 == LINES_MAX && lines.len() > LINES_MAX { " ..." } else { "" };
        let fits = width.saturating_sub(15 + dots.len());
        let kept: String = line.chars().take(fits).collect();
        out.push_str(&format!("{:15}{}{dots}\n", "", kept.trim_end()));
    }
}

/// The start of a long text, up to where its list of places begins, so that the wanted value is seen too.
fn short(text: &str) -> &str {
    match text.split_once(": ") {
        Some((start, _)) if text.chars().count() > OBSERVED_CHARS_MAX => start,
        _ => text,
    }
}

/// "1; wanted 0".
fn is_and_should(finding: &Finding) -> String {
    match (finding.observed.is_empty(), finding.wanted.is_empty()) {
        (false, false) => {
            let observed = short(&finding.observed);
            format!("{observed}; wanted {}", finding.wanted)
        }
        (true, false) => format!("wanted {}", finding.wanted),
        _ if finding.observed.is_empty() => finding.because.clone(),
        _ => finding.observed.clone(),
    }
}

fn add_jitter(out: &mut String, document: &ResultDocument, jitter: &Jitter<'_>, width: usize) {
    let all = jitter.cpus(&CpuParts::of(document));
    let (threshold, run) = (duration(jitter.record.threshold_ns), span(jitter.record.ran_ns()));
    add_heading(out, &format!("Interruptions of {threshold} or longer in {run}"));
    let mut shown: Vec<&CpuFigures<'_>> = all.iter().collect();
    if shown.len() > CPUS_MAX {
        shown.sort_by_key(|cpu| (std::cmp::Reverse(cpu.record.interruption_ns_max), cpu.record.cpu));
        shown.truncate(CPUS_MAX);
    }
    shown.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    out.push_str(&jitter_table(&shown, width));
    if shown.iter().any(|cpu| cpu.part == CpuPart::Chosen) {
        out.push_str(&format!("  {}\n", paint(DIM, CHOSEN_NOTE)));
    }
    if let Some(sentence) = not_traced(jitter.record) {
        out.push_str(&paint(YELLOW, "  Causes were not traced."));
        out.push('\n');
        add_wrapped(out, &sentence, 2, width);
    }
    if shown.len() < all.len() {
        let left = plural(all.len() - shown.len(), "CPU");
        out.push_str(&paint(DIM, &format!("  {left} with shorter longest interruptions are in the report.")));
        out.push('\n');
    }
}

/// Why no interruption has a cause from the kernel's trace; none when each was compared with it.
fn not_traced(record: &JitterRecord) -> Option<String> {
    let causes = record.causes.as_ref()?;
    (causes.source != CauseSource::Trace).then(|| words::source(causes))
}

/// Narrow terminals lose the share of time lost and the middle percentile.
fn jitter_table(cpus: &[&CpuFigures<'_>], width: usize) -> String {
    let is_wide = width >= 80;
    let mut head = vec!["CPU", "part", "count", "per s"];
    head.extend(if is_wide { &["lost", "p50", "p99", "p99.9", "max"][..] } else { &["p99", "max"][..] });
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for cpu in cpus {
        let percentile = |q: f64| or_dash(cpu.percentile(q).map(duration));
        let mut row = vec![
            cpu.record.cpu.to_string(),
            cpu.part.word().to_owned(),
            count(cpu.record.interruption_count),
            or_dash(cpu.study.rate.map(|r| rate(r.per_s))),
        ];
        if is_wide {
            row.extend([or_dash(cpu.lost_percent().map(percent)), percentile(0.5), percentile(0.99)]);
            row.push(percentile(0.999));
        } else {
            row.push(percentile(0.99));
        }
        row.push(or_dash(cpu.study.length_ns_max.map(duration)));
        rows.push(row);
    }
    columns(&rows, &[0, 2, 3, 4, 5, 6, 7, 8], 2)
}

fn add_warnings(out: &mut String, document: &ResultDocument, width: usize) {
    let warnings = crate::shared::document::all_warnings(document);
    if warnings.is_empty() {
        return;
    }
    add_heading(out, "Warnings");
    for warning in warnings.iter().take(WARNINGS_MAX) {
        add_field(out, "-", &clean(warning), 2, width);
    }
    if warnings.len() > WARNINGS_MAX {
        out.push_str(&paint(DIM, &format!("  and {} more in the report", warnings.len() - WARNINGS_MAX)));
        out.push('\n');
    }
}
