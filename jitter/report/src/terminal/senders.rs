//! Senders of interrupts to other CPUs, as terminal text.

use super::{add_dim, causes::add_rows};
use crate::causes::words::cpu_list;
use lowlat_jitter::SenderStudy;
use lowlat_text::columns::Table;
use lowlat_text::text::{add_heading, cut};
use lowlat_text::units::{clean, count, duration, plural, rate};

/// Highest number of senders shown without --verbose.
const SENDERS_MAX: usize = 8;

/// Adds the table with remedies; nothing if nothing was sent or senders were not traced.
pub fn add(out: &mut String, all: &[SenderStudy], width: usize, show_all: bool) {
    if all.is_empty() {
        return;
    }
    add_heading(out, "Interrupts from other CPUs");
    let shown = if show_all { all.len() } else { all.len().min(SENDERS_MAX) };
    let (rows, rest) = all.split_at(shown);
    let (who_width, what_width) = match width {
        ..100 => (23, 27),
        100..120 => (30, 32),
        _ => (40, 48),
    };
    let text = Table::of(rows)
        .words("sender", 0, |of| cut(&clean(&who(of)), who_width))
        .words("reason", 0, |of| cut(&clean(&of.what), what_width))
        .words("from", 4, |of| cpu_list(&of.from, 10))
        .words("CPUs", 3, |of| cpu_list(&of.cpus, 14))
        .figures("count", 1, |of| count(of.count))
        .figures("per s", 5, |of| of.rate.map_or_else(String::new, |r| rate(r.per_s)))
        .figures("time", 2, |of| duration(of.ns_total))
        .figures("longest", 0, |of| duration(of.ns_max))
        .text(width);
    let remedies = rows.iter().map(|of| of.remedy.as_ref());
    add_rows(out, text.lines().map(str::to_owned), remedies, |_, _| true, (width, show_all));
    if !rest.is_empty() {
        add_dim(out, &format!("  and {} with less time", plural(rest.len(), "sender")), width);
    }
}

/// Returns the sender's name; lowlat itself is marked.
fn who(of: &SenderStudy) -> String {
    if of.is_own { format!("{}, lowlat's own", of.who) } else { of.who.clone() }
}
