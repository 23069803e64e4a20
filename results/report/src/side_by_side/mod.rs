//! Documents side by side, and each later one compared with the first.

pub mod html;

use crate::compare::{comparison::change_clause, terminal::comparison_text};
use lowlat_results::compare::{
    Comparison, DocumentFigures, LimitOutcome, LimitVerdict, LimitedQuantity, SECONDS_MIN, SideBySide,
};
use lowlat_text::{
    columns::Table,
    text::{BOLD, GREEN, RED, YELLOW, add_field, add_painted, cut, paint, usable},
    units::{clean, duration, percent, rate},
};

/// One document as a row.
struct Row {
    /// Letter of the document: "A", "B".
    letter: String,
    name: String,
    score: String,
    faults: String,
    rate: String,
    interval: String,
    lost: String,
    longest: String,
}

/// Returns a row for each document.
fn rows(of: &SideBySide) -> Vec<Row> {
    of.documents.iter().enumerate().map(|(at, document)| row(at, document)).collect()
}

fn row(at: usize, document: &DocumentFigures) -> Row {
    let dash = || "-".to_owned();
    let jitter = document.jitter.as_ref();
    let interval = jitter.and_then(|of| of.rate);
    Row {
        letter: letter(at),
        name: clean(&document.name),
        score: document.score_percent.map_or_else(dash, |percent| percent.to_string()),
        faults: document.fault_count.to_string(),
        rate: interval.map_or_else(dash, |of| rate(of.per_s)),
        interval: interval
            .map_or_else(dash, |of| format!("{} to {}", rate(of.per_s_low), rate(of.per_s_high))),
        lost: jitter.and_then(|of| of.lost_share).map_or_else(dash, |share| percent(share * 100.0)),
        longest: jitter.and_then(|of| of.length_ns_max).map_or_else(dash, duration),
    }
}

/// Returns the name of a document in order: "A" to "Z", then numbers.
fn letter(at: usize) -> String {
    u8::try_from(at)
        .ok()
        .filter(|at| *at < 26)
        .map_or_else(|| (at + 1).to_string(), |at| char::from(b'A' + at).to_string())
}

/// Returns the host, kernel and start of a document in one line.
fn facts(document: &DocumentFigures) -> String {
    let kernel =
        if document.kernel.is_empty() { String::new() } else { format!("kernel {}", document.kernel) };
    let measured = document.jitter.as_ref().map_or_else(
        || "interruptions not measured".to_owned(),
        |of| format!("{:.0} core-seconds from {}", of.core_seconds, duration(of.threshold_ns)),
    );
    let parts = [document.host.clone(), kernel, document.started_at.clone(), measured];
    let parts: Vec<String> = parts.iter().filter(|part| !part.is_empty()).map(|part| clean(part)).collect();
    parts.join(", ")
}

/// Each comparison with the place of its document, the title and the outcome.
fn comparisons(of: &SideBySide) -> impl Iterator<Item = (usize, String, &Comparison, Option<&LimitOutcome>)> {
    let title = |at: usize| {
        if of.documents.len() > 2 && of.comparisons.len() == 1 {
            let side =
                |first| (first..of.documents.len()).step_by(2).map(letter).collect::<Vec<_>>().join(", ");
            return format!("{} after {}", side(1), side(0));
        }
        let name = of.documents.get(at).map(|document| document.name.as_str()).unwrap_or_default();
        format!("{} after A: {}", letter(at), clean(name))
    };
    of.comparisons
        .iter()
        .enumerate()
        .map(move |(at, comparison)| (at + 1, title(at + 1), comparison, of.limits.get(at)))
}

/// Returns one sentence on a limit.
fn limit_sentence(outcome: &LimitOutcome) -> String {
    let reasons = |verdict| {
        let one = |of: &LimitedQuantity| {
            let margin = percent(of.margin * 100.0);
            let figures = of.figures.as_ref().map_or_else(|| "not compared".to_owned(), change_clause);
            format!("{}, limit {margin} more: {figures}", of.quantity.name())
        };
        let of = outcome.quantities.iter().filter(|of| of.verdict == verdict);
        of.map(one).collect::<Vec<_>>().join("; ")
    };
    match outcome.verdict {
        LimitVerdict::Worse => format!("Worse by more than the limit ({}).", reasons(LimitVerdict::Worse)),
        LimitVerdict::Held => "Not worse by more than the limit.".to_owned(),
        LimitVerdict::NotShown => format!(
            "Not shown to be worse by more than the limit, nor to be within it ({}). Measure longer to decide.",
            reasons(LimitVerdict::NotShown)
        ),
        LimitVerdict::SurroundingsDiffered => {
            "The limit is not judged: the load of the host differed. Compare runs at the same load."
                .to_owned()
        }
        LimitVerdict::TooShort => {
            format!("The limit is not judged: each side needs {SECONDS_MIN} whole seconds.")
        }
    }
}

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

#[cfg(test)]
mod tests {
    #[test]
    fn letters_are_followed_by_numbers() {
        assert_eq!([0, 25, 26].map(super::letter), ["A", "Z", "27"]);
    }
}
