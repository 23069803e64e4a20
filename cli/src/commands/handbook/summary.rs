//! The handbook's list of pages, `docs/SUMMARY.md`, and the links between pages.

use super::{is_same, markdown_below, pages, read, top};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// The list of commands, by group.
fn commands() -> String {
    let line = |command: &pages::Documented| {
        let indent = "  ".repeat(command.words.len());
        format!("{indent}- [{}](commands/{})\n", command.words.join(" "), command.file())
    };
    let lines: Vec<String> = pages::all().iter().map(line).collect();
    format!("- [Commands](commands/README.md)\n{}", lines.concat())
}

/// The list of the layers of settings.
fn settings() -> String {
    let layers = lowlat_settings::Layer::ALL;
    let lines: Vec<String> =
        layers.iter().map(|layer| format!("  - [{0}](settings/{0}.md)\n", layer.word())).collect();
    format!("- [Settings](settings/README.md)\n{}", lines.concat())
}

/// The list of decisions, as their own list has them.
fn decisions() -> String {
    let list = read(&top().join("docs/decisions/README.md"));
    let lines: Vec<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("- ["))
        .map(|rest| format!("  - [{}\n", rest.replacen("](", "](decisions/", 1)))
        .collect();
    format!("- [Decisions](decisions/README.md)\n{}", lines.concat())
}

/// Replaces the lines from the one that starts with `first` to the next that starts a list of its own.
fn replace(summary: &str, first: &str, list: &str) -> String {
    let start = summary.find(first).unwrap_or_else(|| panic!("docs/SUMMARY.md has no {first}"));
    let mut end = summary.len();
    for (at, _) in summary[start..].match_indices('\n') {
        let next = start + at + 1;
        if !summary[next..].starts_with("  ") {
            end = next;
            break;
        }
    }
    format!("{}{list}{}", &summary[..start], &summary[end..])
}

#[test]
fn the_summary_lists_every_page() {
    let path = top().join("docs/SUMMARY.md");
    let present = read(&path);
    let summary = replace(&present, "- [Commands]", &commands());
    let summary = replace(&summary, "- [Settings]", &settings());
    let summary = replace(&summary, "- [Decisions]", &decisions());
    assert!(is_same(&path, &summary), "docs/SUMMARY.md lacks pages\nhint: INSTA_UPDATE=always writes it");
    let listed: BTreeSet<PathBuf> = links(&summary).map(|link| top().join("docs").join(link)).collect();
    let missing: Vec<_> = markdown_below(&top().join("docs"))
        .into_iter()
        .filter(|page| *page != path && !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

/// Pages that only the handbook has: `cargo xtask handbook` makes them.
fn is_made(page: &Path, link: &str) -> bool {
    page.ends_with("docs/SUMMARY.md") && link.starts_with("settings/")
}

/// The targets of relative links outside blocks.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.split("\n```").step_by(2);
    let targets = prose.flat_map(|part| part.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.contains(' '))
}

/// The anchors of a page, as both mdBook and code hosts derive them from headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let prose: String = text.split("\n```").step_by(2).collect::<Vec<_>>().join("\n");
    let headings = prose
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    let letters = |heading: &str| {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    headings.map(|heading| letters(heading.trim())).collect()
}

#[test]
fn every_link_between_documents_resolves() {
    let mut wrong = Vec::new();
    let docs = top().join("docs");
    for page in super::documents() {
        let text = read(&page);
        for link in links(&text).filter(|link| !is_made(&page, link)) {
            let (file, anchor) =
                link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = if file.is_empty() {
                page.clone()
            } else {
                page.parent().unwrap_or(Path::new("/")).join(file)
            };
            let target = target.canonicalize().unwrap_or_default();
            // A page of the book can link only to the book.
            let is_inside = !page.starts_with(&docs) || target.starts_with(&docs);
            let has_anchor = || {
                let is_page = target.extension().is_some_and(|ending| ending == "md");
                anchor.is_none_or(|anchor| is_page && anchors(&read(&target)).contains(anchor))
            };
            if !target.exists() || !is_inside || !has_anchor() {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere, or out of docs/:\n{}", wrong.join("\n"));
}
