//! Documents side by side as terminal text.

use super::{Row, comparisons, facts, letter, limit_sentence, rows};
use crate::jitter::terminal::comparison_text;
use lowlat_result::compare::{LimitOutcome, LimitVerdict, SideBySide};
use lowlat_text::columns::{Column, table};
use lowlat_text::text::{BOLD, GREEN, RED, YELLOW, add_field, cut, paint, usable, wrap};

/// Longest name of a document in the table, in characters.
const NAME_MAX: usize = 24;

/// Formats documents side by side for a terminal of this width.
pub fn side_by_side_text(of: &SideBySide, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    out.push_str(&format!("{}\n", paint(BOLD, "Documents")));
    let rows = rows(of);
    let cells = |of: &dyn Fn(&Row) -> String| -> Vec<String> { rows.iter().map(of).collect() };
    out.push_str(&table(
        vec![
            Column::words("", 0, cells(&|row| row.letter.clone())),
            Column::words("document", 0, cells(&|row| cut(&row.name, NAME_MAX))),
            Column::figures("score", 1, cells(&|row| row.score.clone())),
            Column::figures("faults", 3, cells(&|row| row.faults.clone())),
            Column::figures("per s and CPU", 0, cells(&|row| row.rate.clone())),
            Column::figures("95 % interval", 2, cells(&|row| row.interval.clone())),
            Column::figures("time lost", 2, cells(&|row| row.lost.clone())),
            Column::figures("longest", 1, cells(&|row| row.longest.clone())),
        ],
        width,
    ));
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
    for line in wrap(&limit_sentence(outcome), width) {
        out.push_str(&format!("{}\n", paint(style, &line)));
    }
}
