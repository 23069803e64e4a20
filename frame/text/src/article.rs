//! Reports of plain parts: a result, details, tables and sentences, as terminal text and on a page.

use crate::columns::{Column, Table, table};
use crate::page::{Section, columns_table, facts, micro, note, page, section};
use crate::text::{BOLD, add_detail, add_field, add_heading, add_result, add_sentences, add_wrapped, usable};
use crate::units::clean;
use crate::view::{View, ViewPage};
use maud::{Markup, html};
use std::rc::Rc;

/// Least distance from the start of a label to its text.
const LABEL_WIDTH_MIN: usize = 12;

#[derive(Debug)]
enum Part {
    Heading(String),
    Text(String),
    /// Its name, for those who cannot see it.
    Table(&'static str, Vec<Column>),
    Sentences(&'static str, Vec<String>),
    /// Sentences that are also warnings of the document.
    Doubts(&'static str, Vec<String>),
    Facts(Vec<(&'static str, String)>),
}

/// A report in parts, in reading order. Parts without content are left out.
#[derive(Debug)]
pub struct Article {
    /// Kind of the measurement, which is also its anchor on a page.
    kind: &'static str,
    title: &'static str,
    /// One sentence.
    result: String,
    /// Paragraphs below it.
    details: Vec<String>,
    parts: Vec<Part>,
}

impl Article {
    pub fn new(kind: &'static str, title: &'static str, result: impl Into<String>) -> Self {
        Self { kind, title, result: result.into(), details: Vec::new(), parts: Vec::new() }
    }

    /// Adds a detail to the result.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        self.details.extend(Some(text.into()).filter(|text| !text.is_empty()));
        self
    }

    #[must_use]
    pub fn heading(self, text: impl Into<String>) -> Self {
        self.with(Part::Heading(text.into()))
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        self.with(Part::Text(text.into()))
    }

    #[must_use]
    pub fn table<T>(self, name: &'static str, table: Table<'_, T>) -> Self {
        if table.is_empty() { self } else { self.with(Part::Table(name, table.into_columns())) }
    }

    /// Adds a table below its name.
    #[must_use]
    pub fn titled_table<T>(self, name: &'static str, of: Table<'_, T>) -> Self {
        if of.is_empty() { self } else { self.heading(name).table(name, of) }
    }

    /// Adds sentences under a head.
    #[must_use]
    pub fn sentences(self, head: &'static str, sentences: Vec<String>) -> Self {
        self.with(Part::Sentences(head, sentences))
    }

    /// Adds sentences that make the figures doubtful.
    #[must_use]
    pub fn doubts(self, head: &'static str, sentences: Vec<String>) -> Self {
        self.with(Part::Doubts(head, sentences))
    }

    #[must_use]
    pub fn facts(self, facts: Vec<(&'static str, String)>) -> Self {
        self.with(Part::Facts(facts))
    }

    fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Formats it for a terminal.
    pub fn to_text(&self, width: usize) -> String {
        let width = usable(width);
        let mut out = String::new();
        add_result(&mut out, &self.result, width);
        self.details.iter().for_each(|detail| add_detail(&mut out, detail, width));
        let mut is_below_heading = false;
        for part in &self.parts {
            let is_heading = matches!(part, Part::Heading(_));
            match part {
                Part::Heading(text) => add_heading(&mut out, &clean(text)),
                Part::Text(text) => add_wrapped(&mut out, &clean(text), 2, width),
                Part::Table(_, columns) => {
                    out.push_str(if is_below_heading { "" } else { "\n" });
                    out.push_str(&table(columns.clone(), width));
                }
                Part::Sentences(head, sentences) | Part::Doubts(head, sentences) => {
                    add_sentences(&mut out, (BOLD, head), sentences, width);
                }
                Part::Facts(facts) => {
                    let longest = facts.iter().map(|(label, _)| label.len() + 2).max().unwrap_or(0);
                    for (label, text) in facts {
                        add_field(&mut out, label, &clean(text), longest.max(LABEL_WIDTH_MIN), width);
                    }
                }
            }
            is_below_heading = is_heading;
        }
        out
    }

    fn parts(&self) -> Markup {
        html! {
            div class="article" {
                @for part in &self.parts {
                    @match part {
                        Part::Heading(text) => h3 { (micro(&clean(text))) },
                        Part::Text(text) => p { (micro(&clean(text))) },
                        Part::Table(name, columns) => (columns_table(name, columns)),
                        Part::Sentences(head, sentences) => {
                            @if !sentences.is_empty() {
                                h3 { (head) }
                                ul class="sentences" { @for sentence in sentences { li { (micro(&clean(sentence))) } } }
                            }
                        }
                        Part::Doubts(head, sentences) => (note(head, sentences)),
                        Part::Facts(of) => (facts(of.iter().map(|(label, text)| (*label, micro(text))))),
                    }
                }
            }
        }
    }

    fn verdict(&self) -> Markup {
        html! { p class="verdict" { (micro(&clean(&self.result))) } }
    }

    fn details(&self) -> Markup {
        html! { @for detail in &self.details { (micro(&clean(detail))) " " } }
    }

    /// Builds a page of its own, with a footer such as [`written_by`](crate::page::written_by).
    pub fn page(&self, footer: &Markup) -> String {
        let body = html! {
            section id="summary" class="hero" aria-labelledby="summary-title" {
                h1 id="summary-title" { (self.title) }
                (self.verdict())
                @for detail in &self.details { p { (micro(&clean(detail))) } }
            }
            section { (self.parts()) }
        };
        let footer = html! { footer { (footer) } };
        page(&self.title.to_lowercase(), &[Section::new("summary", "Summary", body)], &footer)
    }
}

impl Article {
    /// Returns the article as a part of the page of a run.
    pub fn into_view(self) -> View<'static> {
        let doubts = |part: &Part| if let Part::Doubts(_, of) = part { of.clone() } else { Vec::new() };
        let text = Rc::new(self);
        let page = Rc::clone(&text);
        View {
            kind: page.kind,
            sentence: Some(page.result.clone()),
            doubts: page.parts.iter().flat_map(doubts).collect(),
            add_summary: Box::new(move |out, width| out.push_str(&text.to_text(width))),
            page: Box::new(move || ViewPage {
                title: page.title,
                verdict: page.verdict(),
                tiles: html! {},
                sections: vec![page.section()],
                parameters: None,
            }),
        }
    }

    fn section(&self) -> Section {
        let body = section(self.kind, self.title, &self.details(), &self.parts());
        Section::new(self.kind, self.title, body)
    }
}
