//! Summary of `assess`: the verdict, the worst findings, the measurements.

use super::measurements::{self, all_warnings};
use lowlat_host_report::fields::title_and_cpus;
use lowlat_host_report::role::source_words;
use lowlat_results::ResultDocument;
use lowlat_settings::Finding;
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_field, add_heading, add_wrapped, paint, usable, wrap,
};
use lowlat_text::units::clean;
use lowlat_text::view::View;
use lowlat_tune_report::audit::grouping::Tally;
use lowlat_tune_report::audit::verdict_style;

/// Highest number of findings shown.
const FINDINGS_MAX: usize = 10;
/// Lines per finding; `lowlat audit` shows the remaining ones.
const LINES_MAX: usize = 2;
/// Length, in characters, above which only the start of the observed value is shown.
const OBSERVED_CHARS_MAX: usize = 70;
/// Highest number of warnings shown.
const WARNINGS_MAX: usize = 8;

/// Formats the findings of a run for a terminal of this width.
pub fn summary(document: &ResultDocument, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_host(&mut out, document, width);
    let views = measurements::views(document);
    add_verdict(&mut out, document, &views, width);
    add_findings(&mut out, document, width);
    for view in &views {
        (view.add_summary)(&mut out, width);
    }
    add_warnings(&mut out, document, width);
    out
}

fn add_host(out: &mut String, document: &ResultDocument, width: usize) {
    for line in document.labels.lines() {
        add_wrapped(out, &clean(line), 0, width);
    }
    for warning in &document.audit.warnings {
        add_wrapped(out, warning, 0, width);
    }
    let (host, cpus) = title_and_cpus(&document.snapshot);
    out.push_str(&paint(BOLD, &clean(&host)));
    out.push('\n');
    add_wrapped(out, &clean(&cpus), 0, width);
    let kernel = &document.snapshot.kernel;
    let mut parts =
        vec![kernel.release.known().map_or_else(|| "Kernel unknown".into(), |r| format!("Kernel {r}"))];
    parts.extend(kernel.distribution.known().cloned());
    parts.push(format!("profile {}", document.audit.profile));
    parts.extend(source_words(document.role.source).map(ToOwned::to_owned));
    parts.push(document.started_at.clone());
    add_wrapped(out, &clean(&parts.join(", ")), 0, width);
}

fn add_verdict(out: &mut String, document: &ResultDocument, views: &[View<'_>], width: usize) {
    let tally = Tally::of(&document.audit);
    let score =
        document.audit.score.percent.map_or_else(|| "No score.".to_owned(), |p| format!("Score {p} of 100."));
    let style = if tally.faults == 0 { GREEN.bold() } else { RED };
    out.push('\n');
    out.push_str(&paint(style, &score));
    out.push('\n');
    let mut text = tally.sentence(&document.audit);
    if tally.reboots > 0 {
        text.push_str(&format!(
            " {} of the changes {} a reboot.",
            tally.reboots,
            if tally.reboots == 1 { "needs" } else { "need" }
        ));
    }
    text.push_str(&tally.not_checked());
    add_wrapped(out, &text, 0, width);
    for sentence in views.iter().filter_map(|view| view.sentence.as_ref()) {
        add_wrapped(out, sentence, 0, width);
    }
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The run was interrupted; its results up to then are shown."));
        out.push('\n');
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
        "Settings to change".to_owned()
    } else {
        format!("Worst {shown} settings")
    };
    add_heading(out, &title);
    for finding in faults.iter().take(FINDINGS_MAX) {
        add_finding(out, finding, width);
    }
    if faults.len() > shown {
        let more = format!("  and {} more; `lowlat audit` shows all", faults.len() - shown);
        out.push_str(&paint(DIM, &more));
        out.push('\n');
    }
}

/// Adds two lines: verdict and id, then the observed and the wanted value.
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

/// Cuts a long text before its list of places, so that the wanted value fits too.
fn short(text: &str) -> &str {
    match text.split_once(": ") {
        Some((start, _)) if text.chars().count() > OBSERVED_CHARS_MAX => start,
        _ => text,
    }
}

/// Returns the observed and the wanted value: "1; wanted 0".
pub fn is_and_should(finding: &Finding) -> String {
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

fn add_warnings(out: &mut String, document: &ResultDocument, width: usize) {
    let warnings = all_warnings(document);
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
