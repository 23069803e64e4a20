//! Documents side by side as terminal text.

use super::{comparisons, facts, letter, limit_sentence, rows};
use crate::compare::terminal::comparison_text;
use lowlat_results::compare::{LimitOutcome, LimitVerdict, SideBySide};
use lowlat_text::columns::Table;
use lowlat_text::text::{BOLD, GREEN, RED, YELLOW, add_field, add_painted, cut, paint, usable};

/// Longest name of a document in the table, in characters.
const NAME_MAX: usize = 24;

/// Formats documents side by side for a terminal of this width.
pub fn side_by_side_text(of: &SideBySide, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    out.push_str(&format!("{}\n", paint(BOLD, "Documents")));
    let rows = rows(of);
    let table = Table::of(&rows)
        .words("", 0, |row| row.letter.clone())
        .words("document", 0, |row| cut(&row.name, NAME_MAX))
        .figures("score", 1, |row| row.score.clone())
        .figures("faults", 3, |row| row.faults.clone())
        .figures("per s and CPU", 0, |row| row.rate.clone())
        .figures("95 % interval", 2, |row| row.interval.clone())
        .figures("time lost", 2, |row| row.lost.clone())
        .figures("longest", 1, |row| row.longest.clone());
    out.push_str(&table.text(width));
    for (at, document) in of.documents.iter().enumerate() {
        add_field(&mut out, &letter(at), &facts(document), 4, width);
    }
    for (_, title, comparison, limit) in comparisons(of) {
        out.push_str(&format!("\n{}\n", paint(BOLD, &cut(&title, width))));
        out.push_str(&comparison_text(comparison, width));
        if let Some(limit) = limit {
            add_limit(&mut out, limit, width);
        }
    }
    out
}

fn add_limit(out: &mut String, outcome: &LimitOutcome, width: usize) {
    let style = match outcome.verdict {
        LimitVerdict::Worse => RED,
        LimitVerdict::Held => GREEN,
        LimitVerdict::NotShown | LimitVerdict::SurroundingsDiffered | LimitVerdict::TooShort => YELLOW,
    };
    out.push('\n');
    add_painted(out, style, &limit_sentence(outcome), 0, width);
}
