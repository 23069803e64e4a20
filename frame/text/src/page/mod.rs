//! Self-contained HTML page: no network, no fonts, no framework; readable without its script.
//!
//! Pictures are inline SVG written here, without a charting crate. They take their colours from the page's CSS
//! variables, so they follow the light and dark themes and the print style sheet. They need no script and no separate
//! data, so the page of a large host stays small. Each mark carries its value as a tooltip.
//!
//! Everything from the document goes through maud's escaping, and through [`crate::units::clean`] if it can contain
//! control characters. The script and the style sheet are files of this crate.

pub mod svg;

use crate::columns::{Column, NONE};
use crate::units::{capital, clean};
use lowlat_plain::{Labels, printable};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::borrow::Cow;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Content security policy: the page can load nothing, even if some text evaded escaping.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";

#[derive(Debug)]
pub struct Section {
    /// Its anchor in the page.
    pub id: Cow<'static, str>,
    /// Its title in the navigation bar.
    pub title: Cow<'static, str>,
    pub body: Markup,
    /// Style sheets besides the page's own.
    pub styles: Vec<&'static str>,
}

impl Section {
    /// Creates a section that needs only the page's style sheet.
    pub fn new(id: &'static str, title: &'static str, body: Markup) -> Self {
        Self { id: id.into(), title: title.into(), body, styles: Vec::new() }
    }

    /// Adds a style sheet. The page includes a shared one only once.
    #[must_use]
    pub fn with_style(self, style: &'static str) -> Self {
        Self { styles: vec![style], ..self }
    }

    /// Builds a section that folds the sections of a whole page under a title, with `id` before each of their anchors.
    /// `name` is its title in the navigation bar.
    pub fn group(id: &str, name: &str, title: &str, parts: &[Self], is_open: bool) -> Self {
        let styles = parts.iter().flat_map(|part| part.styles.clone()).collect();
        let body = html! {
            details class="document" id=(id) open[is_open] {
                summary { h2 { (title) } }
                @for part in parts { (anchored(&part.body, id)) }
            }
        };
        Self { id: id.to_owned().into(), title: name.to_owned().into(), body, styles }
    }
}

/// Builds a page of sections.
pub fn page(title: &str, sections: &[Section], footer: &Markup) -> String {
    let mut styles = vec![STYLE];
    for section in sections {
        for style in &section.styles {
            if !styles.contains(style) {
                styles.push(style);
            }
        }
    }
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
                style { @for style in styles { (PreEscaped(style)) } }
            }
            body {
                (bar(sections))
                main { @for section in sections { (section.body) } }
                (footer)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // In case a section missed some: no invisible or bidirectional characters reach the page.
    printable::lines(&page.into_string()).into_owned()
}

/// Returns a finished page with the labels of what it shows: in its title, and above its sections. They are the user's
/// words, so they are not translated.
pub fn labelled(page: String, labels: &Labels) -> String {
    let lines: Vec<String> = labels.lines().map(clean).collect();
    if lines.is_empty() {
        return page;
    }
    let title = [&labels.title, &labels.host_name].into_iter().flatten().map(|text| clean(text));
    let title = html! { "lowlat: " @for text in title { (text) ", " } }.into_string();
    let above =
        html! { div class="labels" translate="no" { @for line in &lines { p { (line) } } } }.into_string();
    page.replacen("<title>lowlat: ", &format!("<title>{title}"), 1).replacen(
        "<main>",
        &format!("<main>{above}"),
        1,
    )
}

/// Attributes that contain an anchor, up to the anchor. In texts, maud escapes quotes.
const ANCHORS: [&str; 6] =
    [" id=\"", " href=\"#", " for=\"", " aria-labelledby=\"", " aria-describedby=\"", " aria-controls=\""];

/// Returns the markup with a prefix before each anchor.
fn anchored(markup: &Markup, prefix: &str) -> Markup {
    let mut out = markup.0.clone();
    for attribute in ANCHORS {
        out = out.replace(attribute, &format!("{attribute}{prefix}-"));
    }
    PreEscaped(out)
}

/// Builds the bar at the top: name, sections, theme.
fn bar(sections: &[Section]) -> Markup {
    html! {
        @if let Some(second) = sections.get(1) { a class="skip" href={ "#" (second.id) } { "Skip to " (second.title.to_lowercase()) } }
        header class="bar" {
            div class="bar-inner" {
                span class="brand" { "lowlat" }
                nav aria-label="Sections" {
                    @for section in sections { a href={ "#" (section.id) } { (section.title) } }
                }
                button type="button" id="theme" class="quiet" data-say-light="Light" data-say-dark="Dark"
                    data-say-use-light="Use the light theme" data-say-use-dark="Use the dark theme" hidden { "Dark" }
            }
        }
    }
}

/// Builds a section with its heading.
pub fn section(id: &str, title: &str, lead: &Markup, body: &Markup) -> Markup {
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

/// Builds a table below a row of [`heads`]. `label` is its name for those who cannot see it; with one, it scrolls
/// sideways where it is too wide. If `class` ends in `tall`, it also scrolls down.
pub fn data_table(label: &str, class: &str, of: &[&str], rows: &Markup) -> Markup {
    table_below(label, class, &heads(of), rows)
}

/// Builds heads of columns. One that begins with `<` is flush left, with `>` flush right; an empty one is left out.
pub fn heads(of: &[&str]) -> Markup {
    let place = |head: &str| match head.as_bytes().first() {
        Some(b'<') => Some("left"),
        Some(b'>') => Some("figure"),
        _ => None,
    };
    html! {
        @for head in of.iter().filter(|head| !head.is_empty()) {
            th scope="col" class=[place(head)] { (head.trim_start_matches(['<', '>'])) }
        }
    }
}

/// Builds the same table with the given heads.
pub fn table_below(label: &str, class: &str, heads: &Markup, rows: &Markup) -> Markup {
    let (class, tall) = class.strip_suffix(" tall").map_or((class, ""), |class| (class, " tall"));
    let table = html! { table class=(class) { thead { tr { (heads) } } tbody { (rows) } } };
    if label.is_empty() {
        return table;
    }
    html! { div class={ "scroll" (tall) } tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// Builds a table with all columns that have cells. `name` is for those who cannot see it.
pub fn columns_table(name: &str, columns: &[Column]) -> Markup {
    let kept: Vec<&Column> = columns.iter().filter(|of| of.rank == 0 || !of.is_empty()).collect();
    let head = |(at, of): (usize, &&Column)| match (at, of.is_right) {
        (0, true) => capitalised(&of.head),
        (_, true) => format!(">{}", capitalised(&of.head)),
        (_, false) => format!("<{}", capitalised(of.head.trim())),
    };
    let heads: Vec<String> = kept.iter().enumerate().map(head).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let class = |of: &Column| match (of.is_right, of.is_strong) {
        (false, _) => Some("left"),
        (true, is_strong) => is_strong.then_some("strong"),
    };
    let rows = kept.iter().map(|of| of.cells.len()).max().unwrap_or(0);
    let cell = |of: &Column, row: usize| match of.cells.get(row).map(String::as_str) {
        Some(NONE) => "–".to_owned(),
        cell => micro(&clean(cell.unwrap_or_default())).replace("+-", "±"),
    };
    if rows == 0 {
        return html! { p class="empty" { "Nothing was measured." } };
    }
    html! {
        div class="card flush" {
            (data_table(name, "numbers", &heads, &html! {
                @for row in 0..rows {
                    tr {
                        @for (at, of) in kept.iter().enumerate() {
                            @if at == 0 { th scope="row" class=[class(of)] { (cell(of, row)) } }
                            @else { td class=[class(of)] { (cell(of, row)) } }
                        }
                    }
                }
            }))
        }
    }
}

/// "Per second" of "per second"; a name such as "p99" stays.
fn capitalised(head: &str) -> String {
    let is_word = head.chars().nth(1).is_some_and(|second| second.is_ascii_lowercase());
    if is_word { capital(head) } else { head.to_owned() }
}

/// Puts the micro sign into a text, and a non-breaking space between each figure and its unit.
pub fn micro(text: &str) -> String {
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

/// Builds the last line of a footer: what wrote the page, and when.
pub fn written_by(version: &str, command: &str, started_at: &str) -> Markup {
    html! {
        p class="small" {
            "lowlat " (clean(version)) ", lowlat " (command) ", started " (clean(started_at)) ". This page loads nothing else."
        }
    }
}

/// Builds a tile: a figure with its label and a note.
pub fn tile(label: &str, value: &str, note: &str) -> Markup {
    html! {
        div class="tile" {
            p class="tile-label" { (label) }
            p class="tile-value" { (value) }
            p class="tile-note" { (micro(note)) }
        }
    }
}

/// Builds a note of sentences under a head; nothing without a sentence.
pub fn note(head: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            div class="note" {
                p { b { (head) } }
                ul class="sentences" { @for sentence in sentences { li { (micro(&clean(sentence))) } } }
            }
        }
    }
}

/// Facts that are shown as the firmware prints them, in every language.
const AS_PRINTED: [&str; 2] = ["System", "BIOS"];

/// Builds a list of labelled facts; empty ones are left out.
pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> Markup {
    html! {
        dl class="facts" {
            @for (label, text) in facts {
                @if !text.is_empty() { div { dt { (label) } dd translate=[AS_PRINTED.contains(&label).then_some("no")] { (clean(&text)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Section, micro};
    use maud::html;

    #[test]
    fn anchors_of_a_group_are_its_own_and_texts_stay() {
        let body = html! {
            section id="a" aria-labelledby="a-title" { h2 id="a-title" { "x" } a href="#b" { " id=\"c\"" } a href="https://x/#y" { "z" } }
        };
        let part = Section::new("a", "A", body).with_style("s");
        let group = Section::group("d1", "one", "Document one", &[part], false);
        let text = group.body.into_string();
        for piece in [
            "id=\"d1-a\"",
            "aria-labelledby=\"d1-a-title\"",
            "id=\"d1-a-title\"",
            "href=\"#d1-b\"",
            "https://x/#y",
        ] {
            assert!(text.contains(piece), "{piece}: {text}");
        }
        assert!(text.contains(" id=&quot;c&quot;") && !text.contains(" open"), "{text}");
        assert_eq!(group.styles, ["s"]);
    }

    #[test]
    fn figures_stay_with_their_units() {
        assert_eq!(
            micro("rx 30 us, 4 % of 60 s in 2 sets"),
            "rx 30\u{a0}µs, 4\u{a0}% of 60\u{a0}s in 2 sets"
        );
        assert_eq!(micro("no us "), "no us ");
    }
}
