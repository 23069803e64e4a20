//! Text for terminals. Plain ASCII except for values from the host, so that it displays correctly in any locale.

use crate::units::clean;
use anstyle::{AnsiColor, Style};

/// Headings.
pub const BOLD: Style = Style::new().bold();
/// Details.
pub const DIM: Style = Style::new().dimmed();
/// Faults.
pub const RED: Style = AnsiColor::Red.on_default().bold();
/// Doubts.
pub const YELLOW: Style = AnsiColor::Yellow.on_default();
/// Correct settings.
pub const GREEN: Style = AnsiColor::Green.on_default();
/// CPUs for trading.
pub const BLUE: Style = AnsiColor::Cyan.on_default();
/// Smallest width that a layout supports.
const WIDTH_MIN: usize = 40;

/// Returns the text in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Returns a width that a layout supports.
pub fn usable(width: usize) -> usize {
    width.max(WIDTH_MIN)
}

/// Units that stay on the line of their figure.
const UNITS: [&str; 5] = ["ns", "us", "ms", "s", "%"];

/// Splits a text into lines of at most `width` characters. Breaks at spaces but not between a figure and its unit; a
/// longer word is broken at the end of the line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    for word in words(text) {
        let mut word: Vec<char> = word.chars().collect();
        if length > 0 && length + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        while word.len() > width {
            let rest = word.split_off(break_at(&word, width));
            lines.push(word.into_iter().collect());
            word = rest;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        length += word.len();
        line.extend(word);
    }
    if length > 0 || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Splits a text into words; a figure and its unit count as one word.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')', ']']));
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(figure) => {
                figure.push(' ');
                figure.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

/// Returns where to break a word that is longer than the line: after the last comma or slash that fits, for readable
/// CPU lists and paths.
fn break_at(word: &[char], width: usize) -> usize {
    let fits = &word[..width.min(word.len())];
    match fits.iter().rposition(|c| matches!(c, ',' | '/' | ';')) {
        Some(at) if at > width / 2 => at + 1,
        _ => fits.len().max(1),
    }
}

/// Cuts a text to a number of characters; an ellipsis marks the cut.
pub fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max.saturating_sub(3)).collect();
    format!("{}...", kept.trim_end())
}

/// Adds wrapped text, with every line indented.
pub fn add_wrapped(out: &mut String, text: &str, indent: usize, width: usize) {
    for line in wrap(text, width.saturating_sub(indent)) {
        out.push_str(format!("{:indent$}{line}", "").trim_end());
        out.push('\n');
    }
}

/// Adds the result of a text as wrapped bold lines.
pub fn add_result(out: &mut String, text: &str, width: usize) {
    add_painted(out, BOLD, &clean(text), 0, width);
}

/// Adds wrapped text in a style.
pub fn add_painted(out: &mut String, style: Style, text: &str, indent: usize, width: usize) {
    for line in wrap(text, width.saturating_sub(indent)) {
        out.push_str(&format!("{:indent$}{}\n", "", paint(style, &line)));
    }
}

/// Adds notes, each after an exclamation mark.
pub fn add_notes(out: &mut String, notes: &[String], width: usize) {
    for note in notes {
        for (at, line) in wrap(&clean(note), width.saturating_sub(4)).iter().enumerate() {
            let start = if at == 0 { paint(YELLOW, "!") } else { " ".to_owned() };
            out.push_str(&format!("  {start} {line}\n"));
        }
    }
}

pub fn add_numbered<T: AsRef<str>>(out: &mut String, steps: &[T], width: usize) {
    for (at, step) in (1..).zip(steps) {
        for (line, text) in wrap(&clean(step.as_ref()), width.saturating_sub(5)).iter().enumerate() {
            let number = if line == 0 { format!("{at}.") } else { String::new() };
            out.push_str(&format!("  {number:2} {text}\n"));
        }
    }
}

/// Adds a detail as wrapped dimmed lines, indented by two spaces. No text adds nothing.
pub fn add_detail(out: &mut String, text: &str, width: usize) {
    for line in wrap(&clean(text), width.saturating_sub(2)).into_iter().filter(|line| !line.is_empty()) {
        out.push_str(&format!("  {}\n", paint(DIM, &line)));
    }
}

/// Adds sentences under a head in a style, after an empty line. No sentences add nothing.
pub fn add_sentences(out: &mut String, (style, head): (Style, &str), sentences: &[String], width: usize) {
    if sentences.is_empty() {
        return;
    }
    out.push_str(&format!("\n{}\n", paint(style, head)));
    for sentence in sentences {
        add_wrapped(out, &clean(sentence), 2, width);
    }
}

/// Adds a label with the wrapped text in the column beside it. An empty text adds nothing.
pub fn add_field(out: &mut String, label: &str, text: &str, label_width: usize, width: usize) {
    if text.is_empty() {
        return;
    }
    for (at, line) in wrap(text, width.saturating_sub(label_width + 2)).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        out.push_str("  ");
        out.push_str(&paint(DIM, &format!("{label:label_width$}")));
        out.push_str(line);
        out.push('\n');
    }
}

/// Adds a heading with an empty line before it.
pub fn add_heading(out: &mut String, title: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(&paint(BOLD, title));
    out.push('\n');
}

/// Formats a table with two spaces between columns; the first row is its head. Columns named in `right` are
/// right-aligned. Cells are not wrapped, so callers keep them short.
pub fn columns(rows: &[Vec<String>], right: &[usize], indent: usize) -> String {
    with_dim_head(column_lines(rows, right, indent))
}

/// Joins the parts that there are.
pub fn joined(parts: impl IntoIterator<Item = Option<String>>, by: &str) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(by)
}

/// Joins the lines of a table; the first one is its dimmed head.
pub fn with_dim_head(lines: impl IntoIterator<Item = String>) -> String {
    let painted = |(at, line): (usize, String)| if at == 0 { paint(DIM, &line) } else { line };
    lines.into_iter().enumerate().map(|line| painted(line) + "\n").collect()
}

/// Returns the lines of [`columns`] without colours.
pub fn column_lines(rows: &[Vec<String>], right: &[usize], indent: usize) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width_of = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width_of).collect();
    let line = |row: &Vec<String>| {
        let mut line = " ".repeat(indent);
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width.saturating_sub(cell.chars().count()));
            let (before, after) =
                if right.contains(&column) { (padding, String::new()) } else { (String::new(), padding) };
            line.push_str(&before);
            line.push_str(cell);
            line.push_str(&after);
            line.push_str("  ");
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_breaks_long_lists_at_commas() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("1-7,9-15,17-23,25-31", 12), ["1-7,9-15,", "17-23,25-31"]);
        assert_eq!(wrap("", 9), [""]);
        assert_eq!(wrap("at most 1.28 ms, 5 of 10 s", 13), ["at most", "1.28 ms, 5 of", "10 s"]);
        assert_eq!(wrap("abcdefghijklmnopqrst", 8), ["abcdefgh", "ijklmnop", "qrst"]);
        for width in 0..40 {
            let lines = wrap("a bb cccc dddddddddddd,eeeeeeeee/ffffffffffffffff g", width);
            assert!(lines.iter().all(|line| line.chars().count() <= width.max(8)), "{width}: {lines:?}");
        }
    }
}
