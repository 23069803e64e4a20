//! The states before lowlat, by lowlat and now, as two diffs.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};
use lowlat_plan::outcome::{StateText, ThreeWay};
use lowlat_text::text::{BOLD, DIM, GREEN, RED, paint, wrap};
use lowlat_text::units::{clean, size};

/// Highest number of lines shown of one diff.
const SHOWN_MAX: usize = 30;
/// Longest text to compare line by line: the worst case takes time proportional to the square of the length.
const LINES_MAX: usize = 2_000;
/// Columns before a line of a diff.
const INDENT: usize = 6;
/// Context lines around a change.
const CONTEXT: u32 = 2;

/// Adds the two diffs of one object.
pub fn add_three_way(out: &mut String, three: &ThreeWay, width: usize) {
    out.push_str(&format!("  {}\n", paint(BOLD, &clean(&three.name))));
    add_side(out, "before lowlat -> by lowlat", &three.before, &three.by_lowlat, width);
    add_side(out, "by lowlat -> now", &three.by_lowlat, &three.now, width);
}

fn add_side(out: &mut String, title: &str, from: &StateText, to: &StateText, width: usize) {
    out.push_str(&format!("    {}\n", paint(DIM, title)));
    if let (Some(from), Some(to)) = (text_of(from), text_of(to)) {
        add_difference(out, from, to, width);
    }
    let (from, to) = (in_words(from), in_words(to));
    if from != to {
        add_signed(out, INDENT, '-', &from, width);
        add_signed(out, INDENT, '+', &to, width);
    }
}

/// Returns the text of a file that can be compared line by line; a missing file counts as empty.
fn text_of(state: &StateText) -> Option<&str> {
    match state {
        StateText::Absent => Some(""),
        StateText::File { text, .. } if text.lines().count() <= LINES_MAX => Some(text),
        _ => None,
    }
}

/// Describes a state in a few words; texts are shown separately.
fn in_words(state: &StateText) -> String {
    match state {
        StateText::Absent => "(does not exist)".to_owned(),
        StateText::Value { text } if text.is_empty() => "(empty)".to_owned(),
        StateText::Value { text } => text.clone(),
        StateText::Link { to } => format!("(link to {to})"),
        StateText::File { text, is_cut, attributes } => {
            let cut = if *is_cut { ", only its start was compared" } else { "" };
            let long = if text.lines().count() > LINES_MAX { ", too long to compare here" } else { "" };
            format!("(file, owner and mode {attributes}{cut}{long})")
        }
        StateText::Binary { bytes, digest, attributes } => {
            format!("(binary, {}, SHA-256 {digest}, owner and mode {attributes})", size(*bytes))
        }
    }
}

fn add_difference(out: &mut String, from: &str, to: &str, width: usize) {
    let input = InternedInput::new(from, to);
    let mut difference = Diff::compute(Algorithm::Histogram, &input);
    difference.postprocess_lines(&input);
    let mut context = UnifiedDiffConfig::default();
    context.context_len(CONTEXT);
    let printed =
        difference.unified_diff(&BasicLineDiffPrinter(&input.interner), context, &input).to_string();
    let mut shown = 0_usize;
    for line in printed.lines() {
        let mut characters = line.chars();
        let Some(sign @ ('-' | '+' | ' ')) = characters.next() else { continue };
        shown += 1;
        if shown <= SHOWN_MAX {
            add_signed(out, INDENT, sign, characters.as_str(), width);
        }
    }
    if let Some(more) = shown.checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        out.push_str(&format!("      {}\n", paint(DIM, &format!("and {more} more lines; --json shows all"))));
    }
}

/// Adds a line of a diff; continuation lines are indented further.
pub fn add_signed(out: &mut String, indent: usize, sign: char, line: &str, width: usize) {
    for (at, part) in wrap(&clean(line), width.saturating_sub(8)).iter().enumerate() {
        let start = if at == 0 { format!("{sign} ") } else { "    ".to_owned() };
        let text = format!("{start}{part}");
        let text = match sign {
            '+' => paint(GREEN, text.trim_end()),
            '-' => paint(RED, text.trim_end()),
            _ => text.trim_end().to_owned(),
        };
        out.push_str(&format!("{:indent$}{text}\n", ""));
    }
}
