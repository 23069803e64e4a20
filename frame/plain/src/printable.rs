//! Text from outside, made safe for display.
//!
//! Terminals obey control characters: colours, titles, even responses that look typed. Direction marks
//! reorder text, and invisible characters hide it. Names, file contents, arguments and responses of servers
//! may contain all of these, so they are shown as escapes: `\u{1b}`.

use std::{
    borrow::Cow,
    fmt::{Display, Write},
    iter,
};

/// True if a character affects a terminal or a reader instead of being visible.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks that set the direction of text, and separators of lines.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Invisible characters.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text on one line: newlines and tabs become spaces.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, is_unsafe, |c, out| match c {
        '\n' | '\t' => out.push(' '),
        c => out.extend(c.escape_unicode()),
    })
}

/// The text with its newlines and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'), |c, out| out.extend(c.escape_unicode()))
}

/// JSON with the same meaning, in which such characters become JSON escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(
        text,
        |c| is_unsafe(c) && !matches!(c, '\n' | '\t' | '\r'),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

/// The JSON over several lines, indented as serde_json's pretty form is.
///
/// The code that serialises a type is compiled for each form that it is written in, so all is written in the short form.
pub fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut is_open, mut in_string, mut is_escaped) = (0_usize, false, false, false);
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(iter::repeat_n("  ", depth));
    };
    for c in json.chars() {
        if in_string {
            in_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            out.push(c);
            continue;
        }
        let is_end = matches!(c, '}' | ']');
        depth = depth.saturating_sub(usize::from(is_end));
        // An empty object or list stays on its line.
        if is_open != is_end {
            new_line(&mut out, depth);
        }
        is_open = matches!(c, '{' | '[');
        depth += usize::from(is_open);
        in_string = c == '"';
        out.push(c);
        match c {
            ',' => new_line(&mut out, depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool, replace: impl Fn(char, &mut String)) -> Cow<'_, str> {
    // Nearly every text is printable ASCII, which the first test sees many bytes at a time.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !text.contains(&is_bad) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            replace(c, &mut out);
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Returns an error's text without its hint and its full stop.
pub fn without_hint(error: &impl Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};
    use serde_json::{Map, Value};

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a\\\\"{}\[\],: \n]{0,6}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let members = vec((r#"[a\\\\":{]{0,3}"#, inner.clone()), 0..4);
            prop_oneof![
                vec(inner, 0..4).prop_map(Value::Array),
                members.prop_map(|members| Value::Object(Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn indented_json_is_the_pretty_form(value in any_json()) {
            prop_assert_eq!(indented(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        }
    }

    #[test]
    fn what_acts_is_shown_and_what_is_seen_stays() {
        assert_eq!(line("a\u{1b}[31mb\nc\td"), "a\\u{1b}[31mb c d");
        assert_eq!(lines("a\u{9b}31m\n\tb\r"), "a\\u{9b}31m\n\tb\\u{d}");
        assert_eq!(line("gov\u{202e}ernor\u{200b}"), "gov\\u{202e}ernor\\u{200b}");
        for c in [
            '\0',
            '\u{7}',
            '\u{7f}',
            '\u{80}',
            '\u{9f}',
            '\u{61c}',
            '\u{2028}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert!(is_unsafe(c), "{c:?}");
        }
        for text in ["Größe 10 µs", "日本語", "e\u{301}", "~!@[]\\"] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"name": "a\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}\n"});
        let text = serde_json::to_string_pretty(&value).unwrap();
        let safe = json(&text);
        assert!(!safe.contains(|c| is_unsafe(c) && c != '\n'), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), value);
    }
}
