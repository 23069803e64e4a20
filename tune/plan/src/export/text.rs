//! Spelling: comments, quotes, lines of bounded width. Texts from a host are data in all of them.

use lowlat_host::shell;

/// Columns of a comment, its mark included.
const COLUMNS: usize = 110;

/// Text on one line. Characters that could end a line or reorder its letters become question marks: YAML
/// also breaks lines at U+2028, and bidirectional marks hide the content of a line.
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

/// A paragraph as a comment of a shell, or of a file with the same comments.
pub(super) fn note(text: &str) -> String {
    comment("# ", text)
}

/// The parts that are not empty, each after a mark.
pub(super) fn each_after<const N: usize>(mark: &str, parts: [String; N]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).map(|part| mark.to_owned() + &part).collect()
}

/// An indented item of a list in a comment, with continuation lines indented further.
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

/// A word of a shell. A line break would end the line of a saved value; values of the kernel contain none.
pub(super) fn shell_word(text: &str) -> String {
    shell::word(&one_line(text))
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

/// A text for a here-document. None of its lines may equal the end mark.
pub(super) fn here_document(text: &str) -> String {
    let mut mark = "END".to_owned();
    while text.lines().any(|line| line == mark) {
        mark.push('_');
    }
    let break_ = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("<< '{mark}'\n{text}{break_}{mark}\n")
}
