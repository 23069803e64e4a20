//! The words of a line of GRUB's menu language, as its parser takes them apart.

use std::collections::BTreeMap;

/// Variables of a menu, by name.
pub(super) type Variables = BTreeMap<String, String>;

/// Bytes that the words of one line come to at most: a hostile file's variables must not multiply.
const BYTES_MAX: usize = 64 << 10;

/// Parts a line into words: quotes are taken away, variables are put in (what is not set is empty), and those outside
/// quotes part into words themselves. Ends at `;` or at a comment.
pub(super) fn words(line: &str, variables: &Variables) -> Vec<String> {
    let mut parser = Parser { words: Vec::new(), word: None, bytes: 0 };
    let mut letters = line.chars().peekable();
    let mut quote = None;
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('\''), letter) => parser.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                parser.word.get_or_insert_default();
            }
            (Some(_), '\\') => match letters.next() {
                Some(next @ ('"' | '$' | '\\')) => parser.push(next),
                Some(next) => ['\\', next].into_iter().for_each(|c| parser.push(c)),
                None => {}
            },
            (None, '\\') => letters.next().into_iter().for_each(|c| parser.push(c)),
            (_, '$') => {
                let name = name(&mut letters);
                let value = variables.get(&name).map_or("", String::as_str);
                parser.put(value, quote.is_none());
            }
            (None, ';') => break,
            (None, '#') if parser.word.is_none() => break,
            (None, letter) if letter.is_ascii_whitespace() => parser.end(),
            (_, letter) => parser.push(letter),
        }
    }
    parser.end();
    parser.words
}

/// The name behind a `$`: `name` or `{name}`.
fn name(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    if letters.next_if_eq(&'{').is_some() {
        return letters.by_ref().take_while(|c| *c != '}').collect();
    }
    let mut name = String::new();
    while let Some(letter) = letters.next_if(|c| c.is_ascii_alphanumeric() || "_?@*#".contains(*c)) {
        name.push(letter);
    }
    name
}

struct Parser {
    words: Vec<String>,
    /// The word that is being read; none between words, empty after an empty pair of quotes.
    word: Option<String>,
    bytes: usize,
}

impl Parser {
    fn push(&mut self, letter: char) {
        if self.bytes < BYTES_MAX {
            self.bytes += letter.len_utf8();
            self.word.get_or_insert_default().push(letter);
        }
    }

    fn put(&mut self, value: &str, parts: bool) {
        for letter in value.chars() {
            if parts && letter.is_ascii_whitespace() { self.end() } else { self.push(letter) }
        }
    }

    fn end(&mut self) {
        self.words.extend(self.word.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(line: &str) -> Vec<String> {
        let set = [("root", "hd0"), ("kernelopts", "root=/dev/sda ro quiet ")];
        words(line, &set.map(|(name, value)| (name.into(), value.into())).into())
    }

    #[test]
    fn words_are_parted_as_grub_does() {
        assert_eq!(
            parted("linux ($root)/vmlinuz $kernelopts $tuned_params x"),
            ["linux", "(hd0)/vmlinuz", "root=/dev/sda", "ro", "quiet", "x"]
        );
        assert_eq!(
            parted("a \"b $root c\\\"\" 'd $root' e\\ f '' # g"),
            ["a", "b hd0 c\"", "d $root", "e f", ""]
        );
        assert_eq!(parted("\"$kernelopts\" ${root}1; echo"), ["root=/dev/sda ro quiet ", "hd01"]);
        assert_eq!(parted("a \"open quote"), ["a", "open quote"]);
        assert_eq!(parted("\\"), [""; 0]);
        assert_eq!(parted("${open"), [""; 0]);
    }

    #[test]
    fn variables_do_not_multiply() {
        let long: Variables = [("a".to_owned(), "x".repeat(1 << 12))].into();
        let line = "$a".repeat(1 << 12);
        assert!(words(&line, &long).concat().len() <= BYTES_MAX);
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,100}") {
            let _ = parted(&line);
        }
    }
}
