//! One self-contained HTML page: no network, no fonts, no framework; readable without its script.
//!
//! Pictures are inline SVG written here and not by a charting crate. They take their colours from the page's CSS
//! variables, so they follow the light and dark theme and the print style sheet; they need no script and no data
//! besides themselves, so a page of a large host stays small; and each mark carries its value as a tooltip.
//!
//! Everything that comes from the document goes through maud's escaping, and through [`crate::units::clean`] where
//! it can hold control characters. The script and the style sheet are files of this crate.

mod allocation;
mod causes;
mod comparison;
mod environment;
mod findings;
mod footer;
mod gate;
mod header;
mod jitter;
mod picture;
mod pipeline;
mod svg;
mod topology;
mod warnings;

pub use comparison::comparison_html;
pub use pipeline::matrix_html;

use crate::figures::Jitter;
use crate::units::clean;
use crate::{host_line, is_of_jitter};
use lowlat_result::ResultDocument;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const CAUSES_STYLE: &str = include_str!("causes.css");
const PIPELINE_STYLE: &str = include_str!("pipeline/pipeline.css");
const SCRIPT: &str = include_str!("page.js");
/// Even if some text escaped its escaping, the page could load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// A section of the page: its anchor, its title in the bar, and itself.
type Section = (&'static str, &'static str, Markup);

/// The page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = host_line::title_and_cpus(&document.snapshot);
    page(&title, &sections(document), &footer::footer(document))
}

/// A page of sections.
fn page(title: &str, sections: &[Section], footer: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { "lowlat: " (clean(title)) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(CAUSES_STYLE)) (PreEscaped(PIPELINE_STYLE)) }
            }
            body {
                (bar(sections))
                main { @for (_, _, section) in sections { (section) } }
                (footer)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // Whatever a section forgot: nothing invisible or moving reaches the page.
    lowlat_host::printable::lines(&page.into_string()).into_owned()
}

/// The sections in their order. A page of `lowlat jitter` leads with what was measured, any other with the host.
fn sections(document: &ResultDocument) -> Vec<Section> {
    let jitter = Jitter::of(document);
    let jitter = jitter.as_ref();
    let mut measured: Vec<Section> =
        gate::section(document).map(|gate| ("gate", "Gate", gate)).into_iter().collect();
    measured.push(("jitter", "Jitter", jitter::section(document, jitter)));
    if causes::is_shown(jitter) {
        measured.push(("causes", "Causes", causes::section(document, jitter)));
    }
    let host = vec![
        ("topology", "Topology", topology::section(document)),
        ("allocation", "Allocation", allocation::section(document)),
    ];
    let findings = vec![("findings", "Findings", findings::section(document))];
    let mut sections = vec![("summary", "Summary", header::section(document, jitter))];
    let parts = if is_of_jitter(document) { [measured, findings, host] } else { [host, findings, measured] };
    sections.extend(parts.into_iter().flatten());
    sections.push(("environment", "Environment", environment::section(document)));
    sections.push(("warnings", "Warnings", warnings::section(document)));
    sections
}

/// The bar at the top: name, sections, theme.
fn bar(sections: &[Section]) -> Markup {
    html! {
        @if let Some((id, title, _)) = sections.get(1) { a class="skip" href={ "#" (id) } { "Skip to " (title.to_lowercase()) } }
        div class="bar" {
            div class="bar-inner" {
                span class="brand" { "lowlat" }
                nav aria-label="Sections" {
                    @for (id, title, _) in sections { a href={ "#" (id) } { (title) } }
                }
                button type="button" id="theme" class="quiet" hidden { "Dark" }
            }
        }
    }
}

/// A section with its heading.
fn section(id: &str, title: &str, lead: &Markup, body: &Markup) -> Markup {
    html! {
        section id=(id) aria-labelledby={ (id) "-title" } {
            div class="section-head" {
                h2 id={ (id) "-title" } { (title) }
                p class="lead" { (lead) }
            }
            (body)
        }
    }
}

/// Text with the micro sign, and figures that stay on one line with their unit.
fn micro(text: &str) -> String {
    const UNITS: [(&str, &str); 5] = [(" us", "µs"), (" ns", "ns"), (" ms", "ms"), (" s", "s"), (" %", "%")];
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(at) = rest.find(' ') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let ends_in_digit = before.ends_with(|c: char| c.is_ascii_digit());
        let unit = UNITS.iter().find(|(spelled, _)| {
            after.strip_prefix(spelled).is_some_and(|next| !next.starts_with(char::is_alphanumeric))
        });
        rest = if let Some((spelled, shown)) = unit.filter(|_| ends_in_digit) {
            out.push('\u{a0}');
            out.push_str(shown);
            after.strip_prefix(spelled).unwrap_or_default()
        } else {
            out.push(' ');
            after.strip_prefix(' ').unwrap_or_default()
        };
    }
    out + rest
}

/// A figure with its label and a note.
fn tile(label: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="tile" {
            p class="tile-label" { (label) }
            p class="tile-value" { (value) }
            p class="tile-note" { (micro(note)) }
        }
    }
}

/// Labelled facts; empty ones are left out.
fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        dl class="facts" {
            @for (label, text) in facts {
                @if !text.is_empty() { div { dt { (label) } dd { (clean(&text)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::micro;

    #[test]
    fn figures_stay_with_their_units() {
        assert_eq!(
            micro("rx 30 us, 4 % of 60 s in 2 sets"),
            "rx 30\u{a0}µs, 4\u{a0}% of 60\u{a0}s in 2 sets"
        );
        assert_eq!(micro("no us "), "no us ");
    }
}
