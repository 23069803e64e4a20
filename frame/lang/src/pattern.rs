//! Texts with holes.
//!
//! A text of a page is a string in which [`Marks`] stand for its inline markup. Each mark is one private-use character.

use std::ops::Range;

/// First character that stands for a mark: the first of the supplementary private use areas.
const MARK_FIRST: u32 = 0xF_0000;

/// True if a character can stand for a mark. A page's texts must not contain such characters.
pub fn is_reserved(character: char) -> bool {
    u32::from(character) >= MARK_FIRST
}

/// The inline markup of a text.
#[derive(Debug, Default)]
pub struct Marks<'a> {
    marks: Vec<InlineMark<'a>>,
}

#[derive(Debug)]
struct InlineMark<'a> {
    /// Name of the tag, with a slash before it if it ends an element; empty for a whole element.
    name: &'a str,
    markup: String,
}

impl<'a> Marks<'a> {
    /// Adds a tag, and returns the character that stands for it.
    pub fn tag(&mut self, name: &'a str, markup: String) -> char {
        self.marks.push(InlineMark { name, markup });
        u32::try_from(self.marks.len() - 1)
            .ok()
            .and_then(|index| char::from_u32(MARK_FIRST + index))
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// Adds an element that is not translated, such as code.
    pub fn element(&mut self, markup: String) -> char {
        self.tag("", markup)
    }

    fn get(&self, character: char) -> Option<&InlineMark<'a>> {
        self.marks.get(usize::try_from(u32::from(character).checked_sub(MARK_FIRST)?).ok()?)
    }

    /// Returns the name of a tag; `None` for other characters and whole elements.
    pub fn name(&self, character: char) -> Option<&'a str> {
        self.get(character).map(|mark| mark.name).filter(|name| !name.is_empty())
    }

    /// True if the character stands for a mark.
    pub fn is_mark(&self, character: char) -> bool {
        self.get(character).is_some()
    }

    /// Returns a text as HTML.
    pub fn html(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            match (character, self.get(character)) {
                (_, Some(mark)) => out.push_str(&mark.markup),
                ('&', _) => out.push_str("&amp;"),
                ('<', _) => out.push_str("&lt;"),
                ('>', _) => out.push_str("&gt;"),
                ('"', _) => out.push_str("&quot;"),
                _ => out.push(character),
            }
        }
        out
    }
}

#[derive(Debug, PartialEq)]
enum Piece {
    Literal(String),
    /// A tag such as `<b>` or `</b>`, by its name with the slash.
    Tag(String),
    /// In a translation, with the hole's place in the key.
    Hole {
        kind: Kind,
        place: usize,
    },
}

/// Text that a hole accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `{n}`: a figure or a list of CPUs.
    Figure,
    /// `{w}`: part of a list, without commas, semicolons and colons.
    Word,
    /// `{v}`: a name or value of the kernel or firmware, which stays as it is.
    Verbatim,
    /// `{}`: anything but the end of a sentence.
    Any,
}

impl Kind {
    fn takes(self, text: &str, next: char) -> bool {
        match self {
            Self::Figure => next.is_ascii_digit() || matches!(next, '.' | ',' | '-'),
            Self::Word => !matches!(next, ',' | ';' | ':') && Self::Any.takes(text, next),
            // "kworker/1:2" is a name.
            Self::Verbatim => !(next == ' ' && text.ends_with([',', ';', ':'])),
            // Text put into a sentence never ends that sentence and starts another.
            Self::Any => !(next.is_ascii_uppercase() && text.ends_with(". ")),
        }
    }

    fn is_whole(self, last: char) -> bool {
        self != Self::Figure || last.is_ascii_digit()
    }
}

/// A key of the catalogue with holes or tags, and its translation.
#[derive(Debug)]
pub struct Pattern {
    key: Vec<Piece>,
    translation: Vec<Piece>,
}

impl Pattern {
    /// Reads a key and its translation; `None` if the key has neither holes nor tags.
    pub fn parse(key: &str, translation: &str) -> Option<Self> {
        let key = pieces(key);
        let is_plain = key.iter().all(|piece| matches!(piece, Piece::Literal(_)));
        (!is_plain).then(|| Self { key, translation: pieces(translation) })
    }

    /// Number of characters that a text must share with the key.
    pub fn weight(&self) -> usize {
        let weight = |piece: &Piece| match piece {
            Piece::Literal(text) => text.len(),
            Piece::Tag(_) => 1,
            Piece::Hole { kind, .. } => usize::from(*kind != Kind::Any),
        };
        self.key.iter().map(weight).sum()
    }

    /// Returns the translation of a text that fits the key. `inner` translates what is in the holes.
    pub fn apply(&self, text: &str, marks: &Marks<'_>, inner: impl Fn(&str) -> String) -> Option<String> {
        if let Some(Piece::Literal(end)) = self.key.last()
            && !text.ends_with(end.as_str())
        {
            return None;
        }
        let mut found = Found::default();
        if !fit(&self.key, text, 0, marks, &mut found) {
            return None;
        }
        let mut out = String::new();
        for piece in &self.translation {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Hole { place, .. } => {
                    let part = text.get(found.holes.get(*place)?.clone())?;
                    let is_kept = |of: &Piece| matches!(of, Piece::Hole { kind: Kind::Verbatim, place: key } if key == place);
                    out.push_str(&if self.key.iter().any(is_kept) { part.to_owned() } else { inner(part) });
                }
                Piece::Tag(name) => {
                    let at = found.tags.iter().position(|tag| marks.name(*tag) == Some(name))?;
                    out.push(found.tags.remove(at));
                }
            }
        }
        Some(out)
    }
}

/// Parts of a text that match the holes and tags of a key.
#[derive(Debug, Default)]
struct Found {
    holes: Vec<Range<usize>>,
    tags: Vec<char>,
    /// For each hole, the last end that was tried. Whether the pieces after a hole fit depends only on its end, so no
    /// end is tried twice: the time is linear in the length of the text.
    tried: Vec<usize>,
    /// Number of characters tried in holes.
    #[cfg(test)]
    step_count: usize,
}

/// True if the text from `at` fits the pieces. The starts at which a hole is tried only increase.
fn fit(pieces: &[Piece], text: &str, at: usize, marks: &Marks<'_>, found: &mut Found) -> bool {
    let Some(rest) = text.get(at..) else { return false };
    let Some((first, others)) = pieces.split_first() else { return rest.is_empty() };
    match first {
        Piece::Literal(literal) => {
            rest.starts_with(literal.as_str()) && fit(others, text, at + literal.len(), marks, found)
        }
        Piece::Tag(name) => {
            let Some(tag) = rest.chars().next().filter(|tag| marks.name(*tag) == Some(name)) else {
                return false;
            };
            found.tags.push(tag);
            let fits = fit(others, text, at + tag.len_utf8(), marks, found);
            if !fits {
                found.tags.pop();
            }
            fits
        }
        Piece::Hole { kind, .. } => {
            let hole = found.holes.len();
            if found.tried.len() == hole {
                found.tried.push(0);
            }
            let from = at.max(found.tried[hole]);
            for (start, character) in text.get(from..).unwrap_or_default().char_indices() {
                #[cfg(test)]
                {
                    found.step_count += 1;
                }
                let (start, end) = (from + start, from + start + character.len_utf8());
                if !kind.takes(text.get(at..start).unwrap_or_default(), character) {
                    return false;
                }
                found.tried[hole] = end;
                if !kind.is_whole(character) {
                    continue;
                }
                found.holes.push(at..end);
                if fit(others, text, end, marks, found) {
                    return true;
                }
                found.holes.pop();
            }
            false
        }
    }
}

/// Splits a key or translation at its holes and tags.
fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut literal, mut rest, mut holes) = (String::new(), text, 0);
    while let Some(first) = rest.chars().next() {
        let special = hole(rest, holes).or_else(|| tag(rest));
        let length = special.as_ref().map_or(first.len_utf8(), |(_, length)| *length);
        match special {
            Some((piece, _)) => {
                if !literal.is_empty() {
                    pieces.push(Piece::Literal(std::mem::take(&mut literal)));
                }
                holes += usize::from(matches!(piece, Piece::Hole { .. }));
                pieces.push(piece);
            }
            None => literal.push(first),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    pieces
}

/// Reads `{}`, `{n}`, `{w}`, `{v}` or, in translations, `{1}`; with its length.
fn hole(text: &str, holes_before: usize) -> Option<(Piece, usize)> {
    let inside = text.strip_prefix('{')?;
    let (name, _) = inside.split_once('}')?;
    let (kind, place) = match name {
        "" => (Kind::Any, holes_before),
        "n" => (Kind::Figure, holes_before),
        "w" => (Kind::Word, holes_before),
        "v" => (Kind::Verbatim, holes_before),
        number => (Kind::Any, number.parse::<usize>().ok()?.checked_sub(1)?),
    };
    Some((Piece::Hole { kind, place }, name.len() + 2))
}

/// Reads a tag without attributes, with its length.
fn tag(text: &str) -> Option<(Piece, usize)> {
    let (name, _) = text.strip_prefix('<')?.split_once('>')?;
    let bare = name.strip_prefix('/').unwrap_or(name);
    super::html::INLINE.contains(&bare).then(|| (Piece::Tag(name.to_owned()), name.len() + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalogues, chinese, dictionary::spelled};
    use polib::po_file::parse_from_reader;
    use std::collections::BTreeSet;

    #[test]
    fn catalogues_are_whole_and_have_each_text_once() {
        let mut keys = BTreeSet::new();
        for file in catalogues() {
            let catalog = parse_from_reader(file.as_bytes()).expect("a PO file");
            for message in catalog.messages() {
                let (key, translation) = (spelled(message.msgid()), message.msgstr().expect("one form"));
                assert!(!translation.is_empty(), "{key:?} is not translated");
                assert_eq!(difference(&key, translation), None, "{translation:?} for {key:?}");
                assert!(
                    keys.insert(key.clone()),
                    "{key:?} stands twice, perhaps once with µs or other spaces"
                );
            }
        }
        let all = chinese();
        assert_eq!(all.texts.len() + all.patterns.len(), keys.len());
    }

    /// Returns how the holes or tags of a translation differ from those of its key, of which each is used once. `{}`
    /// and `{1}` take any hole.
    fn difference(key: &str, translation: &str) -> Option<String> {
        let (key, translation) = (pieces(key), pieces(translation));
        let holes = |pieces: &[Piece]| {
            let holes = pieces.iter().filter_map(|piece| match piece {
                Piece::Hole { kind, place } => Some((*place, *kind)),
                _ => None,
            });
            let mut holes: Vec<(usize, Kind)> = holes.collect();
            holes.sort_by_key(|(place, _)| *place);
            holes
        };
        let tags = |pieces: &[Piece]| {
            let tags = pieces.iter().filter_map(|piece| match piece {
                Piece::Tag(name) => Some(name.clone()),
                _ => None,
            });
            let mut tags: Vec<String> = tags.collect();
            tags.sort();
            tags
        };
        let (wanted, found) = (holes(&key), holes(&translation));
        let is_same = |((place, kind), (other_place, other)): (&(usize, Kind), &(usize, Kind))| {
            place == other_place && (other == kind || *other == Kind::Any)
        };
        if wanted.len() != found.len() || !wanted.iter().zip(&found).all(is_same) {
            return Some(format!("holes {found:?} instead of {wanted:?}"));
        }
        let (wanted, found) = (tags(&key), tags(&translation));
        (wanted != found).then(|| format!("tags {found:?} instead of {wanted:?}"))
    }

    fn apply(key: &str, translation: &str, text: &str) -> Option<String> {
        Pattern::parse(key, translation).unwrap().apply(text, &Marks::default(), str::to_uppercase)
    }

    #[test]
    fn holes_keep_their_order_or_take_the_place_they_name() {
        assert_eq!(apply("{n} of {}", "{}/{}", "3 of ab").unwrap(), "3/AB");
        assert_eq!(apply("{n} of {}", "{2}/{1}", "3 of ab").unwrap(), "AB/3");
        assert_eq!(apply("{n} of {}", "{}", "x of ab"), None);
        assert_eq!(apply("{n} of {}", "{}", "3 of "), None);
        assert_eq!(apply("{n}", "[{}]", "1,024.5").unwrap(), "[1,024.5]");
        assert_eq!(apply("CPUs {n}", "CPU {}", "CPUs 1-7,9-15").unwrap(), "CPU 1-7,9-15");
        assert_eq!(apply("{n} s.", "{} 秒。", "1. s."), None, "a figure ends in a digit");
        assert_eq!(apply("a {} b {} b", "{1}{2}", "a x b y b z b").unwrap(), "XY B Z");
        assert_eq!(apply("{n} {w} on {n}", "{2}/{3}", "1 a b on 7").unwrap(), "A B/7");
        assert_eq!(apply("{n} {w} on {n}", "{2}/{3}", "1 a on 7, 2 b on 8"), None);
        assert_eq!(apply("wants {}.", "{}", "wants a. Has b."), None);
        assert_eq!(apply("{n} {w} on {n}", "{2}/{3}", "1 a b on 7").unwrap(), "A B/7");
        assert_eq!(apply("{n} {w} on {n}", "{2}/{3}", "1 a on 7, 2 b on 8"), None);
        assert_eq!(apply("wants {}.", "{}", "wants a.b. c.").unwrap(), "A.B. C");
        assert!(Pattern::parse("a { b", "").is_none());
    }

    #[test]
    fn steps_are_linear_in_the_length_of_a_text() {
        let key = "{} for {}, interruptions of {} or longer, counter {}: {}, {n} per second.";
        let pieces = pieces(key);
        let hole_count = key.matches('{').count();
        for part in [
            "a for 1, interruptions of 2 or longer, counter b: c, 3 per second ",
            " for , interruptions of  or longer, counter : , ",
            " for 1, interruptions of ",
            ": a, ",
            ". A for ",
            "7",
        ] {
            let text = part.repeat(20_000 / part.len());
            let mut found = Found::default();
            assert!(!fit(&pieces, &text, 0, &Marks::default(), &mut found), "{part:?}");
            assert!(
                found.step_count <= 2 * hole_count * text.len(),
                "{} steps for {part:?}",
                found.step_count
            );
        }
    }

    #[test]
    fn a_translation_has_the_holes_and_tags_of_its_key() {
        for same in ["{n}<b>{}</b>", "{}<b>{}</b>", "<b>{2}</b>{1}"] {
            assert_eq!(difference("{n} <b>{w}</b>", same), None, "{same}");
        }
        for other in [
            "{n}",
            "{w}<b>{n}</b>",
            "{n}<b>{w}</b>{}",
            "{1}<b>{1}</b>",
            "{1}<b>{3}</b>",
            "{n}{w}",
            "{n}<b>{w}</b><i>",
        ] {
            assert!(difference("{n} <b>{w}</b>", other).is_some(), "{other}");
        }
        assert!(difference("plain", "{}").is_some());
    }

    #[test]
    fn tags_are_matched_by_name_and_keep_their_markup() {
        let mut marks = Marks::default();
        let (open, close) = (marks.tag("a", "<a href=\"#x\">".into()), marks.tag("/a", "</a>".into()));
        let text = format!("See {open}this{close} & more");
        let pattern = Pattern::parse("See <a>{}</a> & more", "更多 & <a>{}</a>").unwrap();
        let translated = pattern.apply(&text, &marks, str::to_owned).unwrap();
        assert_eq!(marks.html(&translated), "更多 &amp; <a href=\"#x\">this</a>");
        assert_eq!(Pattern::parse("See <b>{}</b>", "").unwrap().apply(&text, &marks, str::to_owned), None);
    }
}
