//! Spelling: comments, quotes, lines of bounded width. What comes from a host is data in every one of them.

use std::fmt::{Arguments, Write};

/// Columns of a comment, its mark included.
const COLUMNS: usize = 110;

/// Text on one line. What could end a line or change the order of its letters becomes a question mark: YAML also breaks
/// lines at U+2028, and bidirectional marks hide what a line says.
pub(super) fn one_line(text: &str) -> String {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
    text.chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// A name or value of a TuneD profile. TuneD expands `${...}` everywhere, even in values of plugins.
pub(super) fn tuned_word(text: &str) -> String {
    one_line(text).replace('$', "?")
}

/// A paragraph as lines of a comment, wrapped at blanks.
pub(super) fn comment(mark: &str, text: &str) -> String {
    wrap(mark, 0, 0, text)
}

/// One of several things that a comment lists: set in, and what does not fit on the line further.
pub(super) fn item(mark: &str, text: &str) -> String {
    wrap(mark, 2, 4, text)
}

fn wrap(mark: &str, first: usize, rest: usize, text: &str) -> String {
    let mut lines = String::new();
    let mut line = format!("{mark}{}", " ".repeat(first));
    let mut is_empty = true;
    for word in one_line(text).split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = format!("{mark}{}", " ".repeat(rest));
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

/// A word of a shell: quoted, unless it is made of harmless characters only.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // A line break would end the line on which a value is kept; no value of a kernel holds one.
    format!("'{}'", one_line(text).replace('\'', "'\\''"))
}

/// A pattern of a shell's `case` that matches this text only.
pub(super) fn shell_pattern(text: &str) -> String {
    let mut pattern = String::new();
    for c in one_line(text).chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    shell_word(&pattern)
}

/// A text for a here-document: its end mark must be none of the lines.
pub(super) fn here_document(text: &str) -> String {
    let mut mark = "END".to_owned();
    while text.lines().any(|line| line == mark) {
        mark.push('_');
    }
    let break_ = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("<< '{mark}'\n{text}{break_}{mark}\n")
}

/// A scalar of YAML in single quotes. What Jinja would take for an expression is marked as data.
pub(super) fn yaml(text: &str) -> String {
    let quoted = format!("'{}'", one_line(text).replace('\'', "''"));
    if text.contains("{{") || text.contains("{%") || text.contains("{#") {
        format!("!unsafe {quoted}")
    } else {
        quoted
    }
}

/// Adds to a text.
pub(super) fn put(text: &mut String, what: Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = text.write_fmt(what);
}
