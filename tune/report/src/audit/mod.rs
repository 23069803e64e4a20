//! Judged settings: tables, the full explanation of one, a section of the page.

pub mod grouping;
pub mod html;
pub mod terminal;

use anstyle::Style;
use lowlat_settings::{Finding, Verdict};
use lowlat_text::{
    text::{BOLD, DIM, GREEN, RED, YELLOW, add_field, paint, usable},
    units::clean,
};

/// Returns the style of a verdict.
pub fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Wrong | Verdict::Conflicting => RED,
        Verdict::Ineffective | Verdict::Shadowed => YELLOW.bold(),
        Verdict::Unknown => YELLOW,
        Verdict::Good => GREEN,
        Verdict::NotApplicable => DIM,
    }
}

/// Returns the CSS class of a verdict.
pub fn verdict_class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::NotApplicable => "na",
        other => other.word(),
    }
}

/// Width of the label column.
const LABEL_WIDTH: usize = 16;

/// Formats everything known about one setting on this host.
pub fn explain(finding: &Finding, width: usize) -> String {
    let width = usable(width);
    let mut out = format!("{}  {}\n", paint(BOLD, &clean(&finding.id)), clean(&finding.name));
    let verdict = paint(verdict_style(finding.verdict), finding.verdict.word());
    out.push_str(&format!("  {verdict}, impact {}\n\n", finding.impact.word()));
    for (label, text) in story(finding) {
        add_field(&mut out, label, &clean(&text), LABEL_WIDTH, width);
    }
    for (at, source) in finding.sources.iter().enumerate() {
        add_field(&mut out, if at == 0 { "Sources" } else { "" }, &clean(source), LABEL_WIDTH, width);
    }
    out
}

/// Returns the explanation as labelled texts, without the sources. Callers leave empty texts out.
pub fn story(finding: &Finding) -> Vec<(&'static str, String)> {
    let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
    let risk = match (finding.risk.word(), finding.is_risk_accepted) {
        ("none", _) => "none known".to_owned(),
        (risk, true) => format!("{risk}; accepted in the role file"),
        (risk, false) => risk.to_owned(),
    };
    vec![
        ("Observed", or(&finding.observed, "nothing")),
        ("Wanted", or(&finding.wanted, "the profile leaves it open")),
        ("Because", finding.because.clone()),
        ("Seen at", finding.seen_at.join(", ")),
        ("Why it matters", finding.reason.clone()),
        ("Cost", or(&finding.cost, "none")),
        ("Risk", risk),
        ("Takes effect", or(if finding.needs_reboot { "after a reboot" } else { "" }, "at once")),
        ("In force when", finding.effective.clone()),
        ("Hazard", finding.hazard.clone()),
    ]
}
