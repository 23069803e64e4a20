//! One self-contained HTML page: no network, no fonts, no framework; readable without its script.
//!
//! Pictures are inline SVG written here and not by a charting crate. They take their colours from the page's CSS
//! variables, so they follow the light and dark theme and the print style sheet; they need no script and no data
//! besides themselves, so a page of a large host stays small; and each mark carries its value as a tooltip.
//!
//! Everything that comes from the document goes through maud's escaping, and through [`crate::units::clean`] where
//! it can hold control characters. The script and the style sheet are files of this crate.

mod allocation;
mod distribution;
mod environment;
mod findings;
mod footer;
mod header;
mod heat;
mod jitter;
mod picture;
mod svg;
mod topology;
mod warnings;

use crate::host_line;
use crate::units::clean;
use lowlat_model::result::ResultDocument;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Even if some text escaped its escaping, the page could load nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

/// The sections of the page: anchor and title.
const SECTIONS: &[(&str, &str)] = &[
    ("summary", "Summary"),
    ("topology", "Topology"),
    ("allocation", "Allocation"),
    ("findings", "Findings"),
    ("jitter", "Jitter"),
    ("environment", "Environment"),
    ("warnings", "Warnings"),
];

/// The page of a result document.
pub fn html(document: &ResultDocument) -> String {
    let (title, _) = host_line::title_and_cpus(&document.snapshot);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { "lowlat: " (clean(&title)) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (bar())
                main {
                    (header::section(document))
                    (topology::section(document))
                    (allocation::section(document))
                    (findings::section(document))
                    (jitter::section(document))
                    (environment::section(document))
                    (warnings::section(document))
                }
                (footer::footer(document))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// The bar at the top: name, sections, theme.
fn bar() -> Markup {
    html! {
        a class="skip" href="#findings" { "Skip to the findings" }
        div class="bar" {
            div class="bar-inner" {
                span class="brand" { "lowlat" }
                nav aria-label="Sections" {
                    @for (id, title) in SECTIONS { a href={ "#" (id) } { (title) } }
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
