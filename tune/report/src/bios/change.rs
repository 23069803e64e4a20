//! Next request to a server as text.

use lowlat_bios::{BiosChange, shown};
use lowlat_text::text::{BOLD, YELLOW, add_wrapped, column_lines, cut, paint, usable};
use lowlat_text::units::{clean, plural};

/// Highest number of characters shown of one value.
const VALUE_CHARS_MAX: usize = 28;

/// Formats the changes of the next request, the pending changes, and the settings left out.
pub fn bios_change_text(change: &BiosChange, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    match &change.request {
        None => add_wrapped(&mut out, "Nothing to send.", 0, width),
        Some(request) => {
            let all = change.later_requests + 1;
            let place = request.uri.as_deref().unwrap_or("(the service names no address)");
            let title = if all == 1 { "Request".to_owned() } else { format!("Request 1 of {all}") };
            out.push_str(&format!("{}\n", paint(BOLD, &title)));
            add_wrapped(&mut out, &clean(&format!("{} {place}", request.method)), 2, width);
            if let Some(window) = &request.window {
                add_wrapped(&mut out, &format!("in the maintenance window of {window}"), 2, width);
            }
            let part = |text: &str| cut(&clean(text), VALUE_CHARS_MAX);
            let row = |attribute: &str, before: &str, after: &str| {
                vec![part(attribute), part(before), format!("-> {}", part(after))]
            };
            let rows = change.changes.iter().map(|change| {
                let before = change.before.as_ref().map_or_else(|| "nothing".into(), shown);
                row(&change.attribute, &before, &shown(&change.after))
            });
            out.push('\n');
            add_rows(&mut out, &rows.collect::<Vec<_>>(), width);
            if !request.follows.is_empty() {
                let title = format!("{} with it", plural(request.follows.len(), "further change"));
                out.push_str(&format!("\n{}\n", paint(YELLOW, &title)));
                let rows = request
                    .follows
                    .iter()
                    .map(|effect| row(&effect.attribute, &shown(&effect.before), &shown(&effect.after)));
                add_rows(&mut out, &rows.collect::<Vec<_>>(), width);
            }
        }
    }
    add_waiting(&mut out, change, width);
    if !change.left_out.is_empty() {
        out.push_str(&format!("\n{}\n", paint(BOLD, "Not as wanted, but left out")));
        for row in &change.left_out {
            let name = if row.id.is_empty() {
                row.attribute.clone()
            } else {
                format!("{} ({})", row.id, row.attribute)
            };
            add_wrapped(&mut out, &clean(&name), 2, width);
            add_wrapped(&mut out, &clean(&row.why), 6, width);
        }
    }
    for warning in &change.warnings {
        add_wrapped(&mut out, &clean(&format!("! {warning}")), 0, width);
    }
    out
}

/// Adds rows in columns if they fit, else as wrapped lines.
pub(super) fn add_rows(out: &mut String, rows: &[Vec<String>], width: usize) {
    let lines = column_lines(rows, &[], 2);
    let is_wide = lines.iter().any(|line| line.trim_end().chars().count() > width);
    for (line, row) in lines.iter().zip(rows) {
        if is_wide {
            add_wrapped(out, &row.join(" "), 2, width);
        } else {
            out.push_str(&format!("{}\n", line.trim_end()));
        }
    }
}

fn add_waiting(out: &mut String, change: &BiosChange, width: usize) {
    if change.waiting.is_empty() {
        return;
    }
    let verb = if change.waiting.len() == 1 { "waits" } else { "wait" };
    let title = format!("{} already {verb} for the restart", plural(change.waiting.len(), "setting"));
    out.push_str(&format!("\n{}\n", paint(YELLOW, &title)));
    for row in &change.waiting {
        let text =
            format!("{} = {}, after the restart {}", row.attribute, shown(&row.active), shown(&row.pending));
        add_wrapped(out, &clean(&text), 2, width);
    }
}
