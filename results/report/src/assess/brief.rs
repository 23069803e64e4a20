//! Text of `assess`: one screen with the verdict, the settings to change first and the next command.

use super::{
    measurements::{self, all_warnings},
    summary::is_and_should,
};
use crate::assess::measurements::jitter_run;
use lowlat_host_report::fields::title_and_cpus;
use lowlat_host_report::role::source_words;
use lowlat_jitter::savings;
use lowlat_jitter_report::figures::Jitter;
use lowlat_jitter_report::terminal::summary::not_traced;
use lowlat_results::ResultDocument;
use lowlat_settings::Finding;
use lowlat_text::text::{BOLD, GREEN, RED, YELLOW, add_wrapped, cut, paint, usable, wrap};
use lowlat_text::units::{clean, duration};
use lowlat_tune_report::audit::grouping::Tally;
use std::cmp::Reverse;

/// Highest number of lines, so that the whole text fits on a terminal of 24 lines with the prompt before and after it.
const LINES_MAX: usize = 20;
/// Highest number of settings shown.
const SETTINGS_MAX: usize = 8;

/// Paths of the results, and the command to run next.
#[derive(Debug)]
pub struct Outcome<'a> {
    pub page: &'a str,
    pub result: &'a str,
    /// The command that shows every change.
    pub plan_command: &'a str,
}

/// Formats a run in at most 20 lines of this width.
pub fn brief(document: &ResultDocument, outcome: &Outcome<'_>, width: usize) -> String {
    let width = usable(width);
    let mut above = String::new();
    add_host(&mut above, document, width);
    add_verdict(&mut above, document, width);
    let mut below = String::new();
    add_warnings(&mut below, document, width);
    add_outcome(&mut below, document, outcome, width);
    let left = LINES_MAX.saturating_sub(above.lines().count() + below.lines().count());
    add_settings(&mut above, document, left, width);
    above + &below
}

fn line(out: &mut String, text: &str, width: usize) {
    out.push_str(&cut(text, width));
    out.push('\n');
}

fn add_host(out: &mut String, document: &ResultDocument, width: usize) {
    for warning in &document.audit.warnings {
        add_wrapped(out, warning, 0, width);
    }
    let (host, cpus) = title_and_cpus(&document.snapshot);
    let kernel = &document.snapshot.kernel;
    let host = cut(&clean(&host), width);
    out.push_str(&format!("{}\n", paint(BOLD, &host)));
    line(out, &clean(&cpus), width);
    let mut parts =
        vec![kernel.release.known().map_or_else(|| "kernel unknown".into(), |r| format!("kernel {r}"))];
    parts.push(format!("profile {}", document.audit.profile));
    parts.extend(source_words(document.role.source).map(ToOwned::to_owned));
    parts.extend(kernel.distribution.known().cloned());
    line(out, &clean(&parts.join(", ")), width);
}

fn add_verdict(out: &mut String, document: &ResultDocument, width: usize) {
    let tally = Tally::of(&document.audit);
    let score =
        document.audit.score.percent.map_or_else(|| "No score".to_owned(), |p| format!("Score {p} of 100"));
    let style = if tally.faults == 0 { GREEN.bold() } else { RED };
    let mut text = format!("{score}: {}", tally.sentence(&document.audit));
    if tally.reboots > 0 {
        let need = if tally.reboots == 1 { "needs" } else { "need" };
        text.push_str(&format!(" {} {need} a reboot.", tally.reboots));
    }
    text.push_str(&tally.not_checked());
    out.push('\n');
    for (at, row) in wrap(&text, width).iter().enumerate() {
        let painted = if at == 0 { row.replacen(&score, &paint(style, &score), 1) } else { row.clone() };
        out.push_str(&format!("{painted}\n"));
    }
    for sentence in measurements::views(document).iter().filter_map(|view| view.sentence.as_ref()) {
        add_wrapped(out, sentence, 0, width);
    }
    if document.jitter().is_some_and(|jitter| not_traced(&jitter.record).is_some()) {
        out.push_str(&paint(YELLOW, "Causes were not traced."));
        out.push_str(" The report says why.\n");
    }
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The run was interrupted; its results up to then are shown."));
        out.push('\n');
    }
}

/// Adds as many settings as fit into the lines, with the heading and the line for the others.
fn add_settings(out: &mut String, document: &ResultDocument, lines: usize, width: usize) {
    let changes = worth_most(document);
    let shown = changes.len().min(SETTINGS_MAX).min(lines.saturating_sub(3));
    if shown == 0 {
        return;
    }
    out.push_str(&format!("\n{}\n", paint(BOLD, "Change first")));
    let labels = changes.iter().take(shown).map(|(finding, _)| finding.id.chars().count()).max().unwrap_or(0);
    for (finding, lost_ns) in changes.iter().take(shown) {
        let why = if *lost_ns > 0 {
            format!("caused {} of interruptions in this run", duration(*lost_ns))
        } else {
            is_and_should(finding)
        };
        line(out, &format!("  {:labels$}  {}", clean(&finding.id), clean(&why)), width);
    }
    if changes.len() > shown {
        line(out, &format!("  and {} more: lowlat audit", changes.len() - shown), width);
    }
}

fn add_warnings(out: &mut String, document: &ResultDocument, width: usize) {
    let warnings = all_warnings(document);
    let Some(first) = warnings.first() else { return };
    let head = match warnings.len() {
        1 => "Warning".to_owned(),
        others => format!("{others} warnings, first"),
    };
    let text = cut(&format!("{head}: {}", clean(first)), width);
    out.push_str(&format!("\n{}\n", text.replacen(&head, &paint(YELLOW, &head), 1)));
}

fn add_outcome(out: &mut String, document: &ResultDocument, outcome: &Outcome<'_>, width: usize) {
    out.push('\n');
    // Paths and commands are never cut: people copy them.
    out.push_str(&format!("Report  {}\nData    {}\n", clean(outcome.page), clean(outcome.result)));
    if document.audit.faults().next().is_some() {
        add_command(out, "Next    ", &clean(outcome.plan_command), width);
    }
}

/// Adds a command after its label. One that is too long continues on the next line, as a shell reads it.
fn add_command(out: &mut String, label: &str, command: &str, width: usize) {
    let indent = label.len() + 2;
    out.push_str(label);
    let mut column = label.len();
    for (at, word) in shell_words(command).into_iter().enumerate() {
        let length = word.chars().count() + 1;
        // Room for the backslash of the next break.
        if at > 0 && column + length + 2 > width {
            out.push_str(&format!(" \\\n{:indent$}", ""));
            column = indent;
        } else if at > 0 {
            out.push(' ');
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

/// Splits a command at the spaces outside of quotes.
fn shell_words(command: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_between = |c: char| {
        let is_between = c == ' ' && !is_quoted && !is_escaped;
        is_quoted ^= c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_quoted && !is_escaped;
        is_between
    };
    command.split(is_between).collect()
}

/// Returns the faults, first those whose causes took most time in this run, then those with the largest impact.
pub(super) fn worth_most(document: &ResultDocument) -> Vec<(&Finding, u64)> {
    let saved = |of: Jitter<'_>| savings(of.record, &of.study, &document.remedy_context());
    let saved = Jitter::of(&jitter_run(document)).map(saved).unwrap_or_default();
    let lost_ns = |id: &str| saved.get(id).copied().unwrap_or(0);
    let mut changes: Vec<(&Finding, u64)> =
        document.audit.faults().map(|finding| (finding, lost_ns(&finding.id))).collect();
    changes.sort_by_key(|(finding, ns)| (Reverse(*ns), Reverse(finding.weight()), finding.rank()));
    changes
}

#[cfg(test)]
mod tests {
    use super::add_command;

    #[test]
    fn a_long_command_continues_as_a_shell_reads_it() {
        let shown = |command: &str| {
            let mut out = String::new();
            add_command(&mut out, "Next    ", command, 40);
            out
        };
        assert_eq!(shown("lowlat tune plan"), "Next    lowlat tune plan\n");
        assert_eq!(
            shown("lowlat tune plan --root /a/directory/of/desk7.tar.gz --role 'the desk'\\''s role'"),
            "Next    lowlat tune plan --root \\\n          /a/directory/of/desk7.tar.gz \\\n          --role 'the desk'\\''s role'\n"
        );
    }
}
