//! Documents as Markdown, for tickets and wikis.

use super::{Named, sentences};
use crate::assess::measurements::all_warnings;
use lowlat_host::Reading;
use lowlat_host_report::fields::title_and_cpus;
use lowlat_jitter::CauseStudy;
use lowlat_jitter_report::causes::label_within;
use lowlat_results::ResultDocument;
use lowlat_settings::Finding;
use lowlat_text::units::{clean, duration, percent, rate};

/// Highest number of causes of a document.
const CAUSES_MAX: usize = 20;
/// Longest name of a cause, in characters.
const CAUSE_CHARS_MAX: usize = 60;

/// Formats documents as Markdown: the verdict, the settings to change, the causes of interruptions, the warnings.
pub fn documents_markdown(documents: &[Named<'_>]) -> String {
    let mut out = String::new();
    if documents.len() > 1 {
        out.push_str(&overview(documents));
    }
    for (name, document) in documents {
        if !out.is_empty() {
            out.push('\n');
        }
        add_document(&mut out, name, document);
    }
    out
}

/// A table with a row for each document.
fn overview(documents: &[Named<'_>]) -> String {
    let rows = documents.iter().map(|(name, document)| {
        let study = document.jitter().and_then(|jitter| jitter.study.as_ref());
        let dash = || "-".to_owned();
        vec![
            name.clone(),
            title_and_cpus(&document.snapshot).0,
            document.audit.score.percent.map_or_else(dash, |percent| percent.to_string()),
            document.audit.faults().count().to_string(),
            study.and_then(|study| study.all.rate).map_or_else(dash, |of| rate(of.per_s)),
            study.and_then(|study| study.all.length_ns_max).map_or_else(dash, duration),
        ]
    });
    let head = ["Document", "Host", "Score", "To change", "Interruptions per s and CPU", "Longest"];
    format!("# Documents\n\n{}", table(&head, rows))
}

fn add_document(out: &mut String, name: &str, document: &ResultDocument) {
    let (host, cpus) = title_and_cpus(&document.snapshot);
    out.push_str(&format!("# {}\n\n", cell(&host)));
    let (kernel, labels) = (&document.snapshot.kernel, &document.labels);
    let text = |reading: &Reading<String>| reading.known().cloned().unwrap_or_default();
    let score =
        document.audit.score.percent.map_or_else(|| "none".into(), |percent| format!("{percent} of 100"));
    let facts = [
        ("Document", name.to_owned()),
        ("Title", labels.title.clone().unwrap_or_default()),
        ("Host name", labels.host_name.clone().unwrap_or_default()),
        ("Note", labels.note.clone().unwrap_or_default()),
        ("Processors", cpus),
        ("Kernel", text(&kernel.release)),
        ("Distribution", text(&kernel.distribution)),
        ("Profile", document.audit.profile.name().to_owned()),
        ("Started", document.started_at.clone()),
        ("Score", score),
    ];
    let facts = facts.iter().filter(|(_, text)| !text.is_empty());
    out.push_str(&facts.map(|(label, text)| format!("- {label}: {}\n", cell(text))).collect::<String>());
    for sentence in sentences(document) {
        out.push_str(&format!("\n{}\n", cell(&sentence)));
    }
    let mut faults: Vec<&Finding> = document.audit.faults().collect();
    faults.sort_by(|a, b| a.rank().cmp(&b.rank()));
    if !faults.is_empty() {
        let rows = faults.iter().map(|finding| {
            let reboot = if finding.needs_reboot { "yes" } else { "no" };
            let of = [
                finding.id.clone(),
                finding.verdict.word().into(),
                finding.observed.clone(),
                finding.wanted.clone(),
                finding.impact.word().into(),
                reboot.into(),
            ];
            of.to_vec()
        });
        let head = ["Setting", "Verdict", "Observed", "Wanted", "Impact", "Reboot"];
        out.push_str(&format!("\n## Settings to change\n\n{}", table(&head, rows)));
    }
    add_causes(out, document);
    let warnings = all_warnings(document);
    if !warnings.is_empty() {
        let lines = warnings.iter().map(|warning| format!("- {}\n", cell(warning))).collect::<String>();
        out.push_str(&format!("\n## Warnings\n\n{lines}"));
    }
}

fn add_causes(out: &mut String, document: &ResultDocument) {
    let study = document.jitter().and_then(|jitter| jitter.study.as_ref());
    let Some(causes) = study.map(|study| &study.causes).filter(|causes| !causes.is_empty()) else { return };
    let row = |of: &CauseStudy| {
        let remedy = of.remedy.as_ref();
        let setting = remedy.map(|remedy| remedy.setting.as_str()).filter(|setting| !setting.is_empty());
        vec![
            label_within(&of.cause, CAUSE_CHARS_MAX),
            of.cpus.to_list(),
            of.rate.map_or_else(|| "-".into(), |of| rate(of.per_s)),
            percent(of.share * 100.0),
            duration(of.ns_max),
            setting.unwrap_or("-").to_owned(),
            remedy.map(|remedy| remedy.action.clone()).unwrap_or_default(),
        ]
    };
    let head = ["Cause", "CPUs", "Per s and CPU", "Share of time", "Longest", "Setting", "Remedy"];
    out.push_str(&format!(
        "\n## Causes of interruptions\n\n{}",
        table(&head, causes.iter().take(CAUSES_MAX).map(row))
    ));
    if causes.len() > CAUSES_MAX {
        out.push_str(&format!("\n{} smaller causes are left out.\n", causes.len() - CAUSES_MAX));
    }
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut out = line(head.iter().map(|text| (*text).to_owned()).collect());
    out.push_str(&line(vec!["---".to_owned(); head.len()]));
    for row in rows {
        out.push_str(&line(row.iter().map(|text| cell(text)).collect()));
    }
    out
}

/// Returns a text that Markdown shows unchanged, on one line.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_of_hosts_are_no_markup() {
        assert_eq!(super::cell("a|b <img> [x](y) `z`\u{1b}"), "a\\|b &lt;img> \\[x\\](y) \\`z\\`\\\\u{1b}");
    }
}
