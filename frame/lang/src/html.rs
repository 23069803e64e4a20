//! Finds the texts of a page and puts their translations in their places.
//!
//! Reads only what maud writes: tags are closed, and `<`, `>`, `&` and quotes are escaped in texts and attributes.

use crate::dictionary::{Dictionary, Lookup, LookupMemory};
use crate::pattern::{Marks, is_reserved};
use lowlat_text::page::micro;
use std::collections::BTreeSet;

/// Elements that are part of a sentence.
pub const INLINE: [&str; 10] = ["a", "abbr", "b", "em", "i", "small", "span", "strong", "sub", "time"];
/// Elements that are part of a sentence and are never translated.
const CODE: [&str; 4] = ["code", "kbd", "samp", "var"];
/// Elements that are copied as they are.
const VERBATIM: [&str; 3] = ["script", "style", "pre"];
/// Attributes that people read or hear, and words for the page's script.
const ATTRIBUTES: [&str; 5] =
    [" title=\"", " aria-label=\"", " data-label=\"", " placeholder=\"", " data-say-"];
/// Begins the value of an attribute.
const VALUE: &str = "=\"";
/// Marks an element that is not translated.
const NOT: &str = "translate=\"no\"";

/// Translates an English page. `language` is the code for the page's `lang` attribute.
pub fn translated(page: &str, language: &str, dictionary: &Dictionary) -> String {
    write(page, language, dictionary, &LookupMemory::default())
}

/// Returns the texts of an English page that have no entry in the catalogue. Names are among them.
pub fn misses(page: &str, dictionary: &Dictionary) -> BTreeSet<String> {
    let memory = LookupMemory::with_misses();
    write(page, "", dictionary, &memory);
    memory.misses()
}

fn write(page: &str, language: &str, dictionary: &Dictionary, memory: &LookupMemory) -> String {
    let mut writer = Writer { dictionary, memory, out: String::with_capacity(page.len()) };
    let mut unit = Unit::default();
    let mut rest = page;
    while let Some((text, tag, after)) = next_tag(rest) {
        unit.text.push_str(&unescaped(text));
        let name = tag.name;
        let is_start = !name.starts_with('/');
        let is_not =
            is_start && (CODE.contains(&name) || VERBATIM.contains(&name) || tag.markup.contains(NOT));
        let (markup, next) = if is_not { element(rest, text.len(), tag) } else { (tag.markup, after) };
        rest = next;
        let is_inline = INLINE.contains(&name.trim_start_matches('/')) || CODE.contains(&name);
        if is_inline && is_not {
            let mark = unit.marks.element(markup.to_owned());
            unit.text.push(mark);
        } else if is_inline {
            let markup = writer.attributes(markup);
            let mark = unit.marks.tag(name, markup);
            unit.text.push(mark);
        } else {
            writer.flush(&std::mem::take(&mut unit));
            if is_not {
                writer.out.push_str(markup);
            } else if name == "html" {
                writer.out.push_str(&markup.replace("lang=\"en\"", &format!("lang=\"{language}\"")));
            } else {
                let markup = writer.attributes(markup);
                writer.out.push_str(&markup);
            }
        }
    }
    unit.text.push_str(&unescaped(rest));
    writer.flush(&unit);
    writer.out
}

/// A text with its inline markup.
#[derive(Debug, Default)]
struct Unit<'a> {
    text: String,
    marks: Marks<'a>,
}

#[derive(Debug, Clone, Copy)]
struct Tag<'a> {
    /// Its name, after a slash if it ends an element.
    name: &'a str,
    /// The tag with its brackets.
    markup: &'a str,
}

struct Writer<'a> {
    dictionary: &'a Dictionary,
    memory: &'a LookupMemory,
    out: String,
}

impl Writer<'_> {
    /// Writes a text and its markup.
    fn flush(&mut self, unit: &Unit<'_>) {
        let Unit { text, marks } = unit;
        let lookup = Lookup::new(self.dictionary, marks, self.memory);
        let is_edge = |character: char| character.is_whitespace() || marks.is_mark(character);
        let translated = within(text, char::is_whitespace, |core| lookup.found(core))
            .or_else(|| within(text, is_edge, |core| lookup.found(core)))
            .unwrap_or_else(|| fragments(text, marks, &lookup));
        self.out.push_str(&marks.html(&set(text, &translated)));
    }

    /// Returns a tag with the attributes translated that people read.
    fn attributes(&self, tag: &str) -> String {
        let mut out = String::new();
        let mut rest = tag;
        while let Some(at) = first_value(rest) {
            let (before, from) = rest.split_at(at);
            let (value, after) = from.split_at(from.find('"').unwrap_or(from.len()));
            out.push_str(before);
            let marks = Marks::default();
            let lookup = Lookup::new(self.dictionary, &marks, self.memory);
            let text = unescaped(value);
            out.push_str(&marks.html(&set(&text, &lookup.text(&text))));
            rest = after;
        }
        out + rest
    }
}

/// Returns a translation as it is set: its figures as in the original, and no spaces between Chinese characters, which
/// the holes of a key leave, or after Chinese punctuation.
fn set(original: &str, translation: &str) -> String {
    let is_wide = |character: char| matches!(u32::from(character), 0x2E80..=0x9FFF | 0xFF00..=0xFFEF);
    let is_point = |character: char| matches!(character, '，' | '。' | '；' | '：' | '、' | '（' | '）');
    let mut out = String::with_capacity(translation.len());
    let mut characters = translation.chars().peekable();
    while let Some(character) = characters.next() {
        let is_needless = out.chars().next_back().is_some_and(|before| {
            is_point(before) || is_wide(before) && characters.peek().is_some_and(|after| is_wide(*after))
        });
        if character != ' ' || !is_needless {
            out.push(character);
        }
    }
    if original.contains(['\u{a0}', 'µ']) { micro(&out) } else { out }
}

/// Translates a text without its edges.
fn within(
    text: &str,
    is_edge: impl Fn(char) -> bool,
    translate: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let from = text.find(|character| !is_edge(character))?;
    let to = text
        .rfind(|character| !is_edge(character))
        .map(|at| at + text.get(at..).and_then(|end| end.chars().next()).map_or(0, char::len_utf8))?;
    let core = text.get(from..to)?;
    Some(format!("{}{}{}", text.get(..from)?, translate(core)?, text.get(to..)?))
}

/// Translates what stands between the tags of a text, each on its own.
fn fragments(text: &str, marks: &Marks<'_>, lookup: &Lookup<'_>) -> String {
    let mut out = String::new();
    let mut from = 0;
    let tags = text.char_indices().filter(|(_, character)| marks.name(*character).is_some());
    let ends = tags.map(|(at, tag)| (at, tag.len_utf8())).chain([(text.len(), 0)]);
    for (at, length) in ends {
        let fragment = text.get(from..at).unwrap_or_default();
        let translated = within(fragment, char::is_whitespace, |core| Some(lookup.text(core)));
        out.push_str(translated.as_deref().unwrap_or(fragment));
        out.push_str(text.get(at..at + length).unwrap_or_default());
        from = at + length;
    }
    out
}

/// Returns where the value of a tag's first attribute begins that is translated.
fn first_value(tag: &str) -> Option<usize> {
    let at = ATTRIBUTES.iter().filter_map(|attribute| tag.find(attribute)).min()?;
    Some(at + tag.get(at..)?.find(VALUE)? + VALUE.len())
}

/// Returns the text up to the next tag, the tag, and what follows.
fn next_tag(page: &str) -> Option<(&str, Tag<'_>, &str)> {
    let at = page.find('<')?;
    let (text, from) = page.split_at(at);
    let (markup, after) = from.split_at(from.find('>')? + 1);
    let inside = markup.get(1..markup.len() - 1)?;
    let name = inside.split([' ', '\n']).next().unwrap_or_default();
    Some((text, Tag { name, markup }, after))
}

/// Returns a whole element whose start tag is at `at`, and what follows it.
fn element<'a>(page: &'a str, at: usize, tag: Tag<'a>) -> (&'a str, &'a str) {
    let from = page.get(at..).unwrap_or_default();
    if VERBATIM.contains(&tag.name) {
        // The content of a script only looks like tags.
        let end = format!("</{}>", tag.name);
        return from.split_at(from.find(&end).map_or(from.len(), |at| at + end.len()));
    }
    let mut end = tag.markup.len();
    let mut depth = 1;
    while let Some((text, inner, _)) = from.get(end..).and_then(next_tag) {
        end += text.len() + inner.markup.len();
        match inner.name.strip_prefix('/') {
            Some(name) if name == tag.name => depth -= 1,
            None if inner.name == tag.name => depth += 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    from.split_at(end)
}

/// Returns the characters that maud escaped. One that could stand for a mark is replaced, so that it cannot repeat
/// markup.
fn unescaped(text: &str) -> String {
    let text = text.replace(is_reserved, "\u{fffd}");
    if !text.contains('&') {
        return text;
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
