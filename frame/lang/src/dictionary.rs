//! A catalogue and how texts are looked up in it.

use crate::pattern::{Marks, Pattern, is_reserved};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

/// Separators at which a text that has no entry is split, with what joins its parts: sentences, parts of sentences.
const SPLITS: [(&str, &str); 4] = [(". ", "。"), ("; ", "；"), (": ", "："), (", ", "，")];

/// Maximum nesting of texts in holes. Deeper ones stay as they are.
const NESTING_MAX: usize = 8;

/// A catalogue: texts and patterns with their translations.
#[derive(Debug, Default)]
pub struct Dictionary {
    pub(crate) texts: HashMap<String, String>,
    /// Patterns by weight: of those that fit a text, the one that shares most with it is taken.
    pub(crate) patterns: Vec<Pattern>,
}

impl Dictionary {
    /// Reads PO files. They are part of the binary, and a test reads them all; a damaged one is left out.
    pub fn of(files: &[&str]) -> Self {
        let mut dictionary = Self::default();
        for catalog in files.iter().filter_map(|file| polib::po_file::parse_from_reader(file.as_bytes()).ok())
        {
            for message in catalog.messages() {
                if let Ok(translation) = message.msgstr() {
                    dictionary.add(message.msgid(), translation);
                }
            }
        }
        dictionary.patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.weight()));
        dictionary
    }

    fn add(&mut self, key: &str, translation: &str) {
        let key = spelled(key);
        match Pattern::parse(&key, translation) {
            Some(pattern) => self.patterns.push(pattern),
            None => _ = self.texts.insert(key, translation.to_owned()),
        }
    }
}

/// Texts that were looked up, with their translations; `None` without an entry.
type Seen = RefCell<HashMap<String, Option<String>>>;

/// The memory of all lookups of a page.
#[derive(Debug, Default)]
pub struct LookupMemory {
    /// Lookups of texts without marks.
    seen: Seen,
    /// The texts that had no entry, if they are collected.
    misses: Option<RefCell<BTreeSet<String>>>,
}

impl LookupMemory {
    /// Returns a memory that collects the texts without an entry.
    pub fn with_misses() -> Self {
        Self { misses: Some(RefCell::default()), ..Self::default() }
    }

    /// Returns the texts that had no entry.
    pub fn misses(self) -> BTreeSet<String> {
        self.misses.map(RefCell::into_inner).unwrap_or_default()
    }
}

/// Lookups in the texts of one page that have the same marks.
#[derive(Debug)]
pub struct Lookup<'a> {
    dictionary: &'a Dictionary,
    marks: &'a Marks<'a>,
    memory: &'a LookupMemory,
    /// Lookups of texts with marks.
    seen: Seen,
    nesting: Cell<usize>,
}

impl<'a> Lookup<'a> {
    pub fn new(dictionary: &'a Dictionary, marks: &'a Marks<'a>, memory: &'a LookupMemory) -> Self {
        Self { dictionary, marks, memory, seen: Seen::default(), nesting: Cell::new(0) }
    }

    /// Returns a text's translation: as a whole or, failing that, of its sentences and their parts. A part without an
    /// entry stays as it is.
    pub fn text(&self, text: &str) -> String {
        if !text.contains(|character: char| character.is_ascii_alphabetic()) {
            return text.to_owned();
        }
        self.found(text).or_else(|| self.in_parts(text)).unwrap_or_else(|| self.missed(text))
    }

    /// Returns a text as it is, and notes it.
    fn missed(&self, text: &str) -> String {
        if let Some(misses) = &self.memory.misses {
            misses.borrow_mut().insert(text.replace(is_reserved, "…"));
        }
        text.to_owned()
    }

    /// Returns the translation of a whole text.
    pub fn found(&self, text: &str) -> Option<String> {
        let memory = if text.contains(is_reserved) { &self.seen } else { &self.memory.seen };
        if let Some(seen) = memory.borrow().get(text) {
            return seen.clone();
        }
        let key = spelled(text);
        // The same text as a sentence, a label, or part of a sentence.
        let found = self.entry(&key).or_else(|| match key.char_indices().next_back()? {
            (at, '.') => Some(self.either(key.get(..at)?)? + "。"),
            (at, ':') => Some(self.either(key.get(..at)?)? + "："),
            _ => self
                .entry(&capitalized(&key))
                .or_else(|| Some(self.either(&format!("{key}."))?.trim_end_matches('。').to_owned())),
        });
        memory.borrow_mut().insert(text.to_owned(), found.clone());
        found
    }

    /// Looks a text up as it is and with a capital.
    fn either(&self, key: &str) -> Option<String> {
        self.entry(key).or_else(|| self.entry(&capitalized(key)))
    }

    fn entry(&self, key: &str) -> Option<String> {
        if let Some(text) = self.dictionary.texts.get(key) {
            return Some(text.clone());
        }
        self.dictionary
            .patterns
            .iter()
            .find_map(|pattern| pattern.apply(key, self.marks, |part| self.nested(part)))
    }

    /// Returns the translation of a text in a hole.
    fn nested(&self, text: &str) -> String {
        let nesting = self.nesting.get();
        if nesting >= NESTING_MAX {
            return self.missed(text);
        }
        self.nesting.set(nesting + 1);
        let translated = self.text(text);
        self.nesting.set(nesting);
        translated
    }

    /// Returns a text with its parts translated, if at least one of them has an entry.
    fn in_parts(&self, text: &str) -> Option<String> {
        if let Some((before, inside)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("))
            && let (Some(outer), inner) = (self.found(before), self.found(inside))
        {
            return Some(format!("{outer}（{}）", inner.unwrap_or_else(|| self.text(inside))));
        }
        SPLITS.iter().find_map(|(between, joint)| {
            if !text.contains(between) {
                return None;
            }
            let is_sentences = *joint == "。";
            let whole =
                |part| self.found(part).or_else(|| is_sentences.then(|| self.in_parts(part)).flatten());
            let parts: Vec<(&str, Option<String>)> =
                text.split(between).map(|part| (part, whole(part))).collect();
            if parts.iter().all(|(_, found)| found.is_none()) {
                return None;
            }
            let translated = parts.into_iter().map(|(part, found)| found.unwrap_or_else(|| self.text(part)));
            Some(translated.collect::<Vec<_>>().join(joint))
        })
    }
}

/// Returns a text as keys spell it: with plain spaces, and `us` for microseconds.
pub fn spelled(text: &str) -> String {
    text.replace('\u{a0}', " ").replace("µs", "us")
}

/// Returns a text with its first letter as a capital.
fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + characters.as_str())
}
