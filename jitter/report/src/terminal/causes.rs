//! Causes as terminal text: the table with remedies, groups of CPUs, the cost of tracing; or the counters.

use crate::{
    causes::{
        counters, is_same_advice, label, label_within, remedy_text,
        words::{self, cpu_list, group_facts, moment},
    },
    figures::Jitter,
    terminal::add_dim,
};
use lowlat_jitter::{CauseStudy, JitterCauses, JitterGroups, Remedy, SenderStudy};
use lowlat_text::{
    columns::Table,
    text::{BLUE, DIM, GREEN, add_heading, add_wrapped, cut, paint, wrap},
    units::{clean, count, duration, percent, plural, rate},
};

/// Highest number of causes shown without --verbose.
const CAUSES_MAX: usize = 12;
/// Highest number of groups shown.
const GROUPS_MAX: usize = 3;
/// Highest number of counters shown without --verbose.
const COUNTERS_MAX: usize = 16;
/// Width of a share's bar on an ordinary and on a wide terminal.
const BARS: (usize, usize) = (10, 30);

/// Adds everything from the trace.
pub fn add_traced(
    out: &mut String,
    jitter: &Jitter<'_>,
    causes: &JitterCauses,
    width: usize,
    show_all: bool,
) {
    add_heading(out, "Causes");
    if let Some(shares) = jitter.study.shares.as_ref().filter(|_| jitter.study.all.count > 0) {
        add_wrapped(out, &format!("Of the interruption time: {}.", words::shares_text(shares)), 2, width);
    }
    let all = &jitter.study.causes;
    let shown = if show_all { all.len() } else { all.len().min(CAUSES_MAX) };
    if all.is_empty() {
        add_wrapped(out, "No interruption has a known cause.", 2, width);
    } else {
        out.push('\n');
        add_table(out, all.get(..shown).unwrap_or(all), width, show_all);
    }
    if shown < all.len() {
        let rest = all.get(shown..).unwrap_or_default();
        let share: f64 = rest.iter().map(|of| of.share).sum();
        let (rest, share) = (plural(rest.len(), "smaller cause"), percent(share * 100.0));
        add_dim(out, &format!("  and {rest}, together {share}"), width);
    }
    add(out, &jitter.study.senders, width, show_all);
    if let Some(groups) = &causes.groups {
        add_groups(out, groups, width);
    }
    add_source(out, jitter, causes, width);
}

/// Adds a row for each cause, with its remedy below.
fn add_table(out: &mut String, causes: &[CauseStudy], width: usize, show_all: bool) {
    let (name_width, bar_width) = match width {
        ..100 => (26, BARS.0),
        100..120 => (36, BARS.0),
        _ => (44, BARS.1),
    };
    let text = Table::of(causes)
        .words("cause", 0, |of| label_within(&of.cause, name_width))
        .words("CPUs", 3, |of| cpu_list(&of.cpus, 14))
        .figures("count", 2, |of| count(of.count))
        .figures("per s", 5, |of| of.rate.map_or_else(String::new, |r| rate(r.per_s)))
        .figures("time", 1, |of| duration(of.ns_total))
        .figures("longest", 1, |of| duration(of.ns_max))
        .figures("share", 0, |of| percent(of.share * 100.0))
        .words("", 4, |of| bar(of.share, bar_width))
        .text(width);
    // "As above" must refer to the last advice for this setting, not to an earlier one.
    let is_last = |shown: &Remedy, remedy: &Remedy| shown.setting == remedy.setting;
    let remedies = causes.iter().map(|of| of.remedy.as_ref());
    add_rows(out, text.lines().map(with_bar), remedies, is_last, (width, show_all));
}

/// Adds the head of a table and its rows, each with its remedy below. `is_last` says whether "as above" may refer to an
/// earlier remedy.
pub(super) fn add_rows<'a>(
    out: &mut String,
    mut lines: impl Iterator<Item = String>,
    remedies: impl Iterator<Item = Option<&'a Remedy>>,
    is_last: fn(&Remedy, &Remedy) -> bool,
    (width, show_all): (usize, bool),
) {
    out.extend(lines.next().map(|line| line + "\n"));
    let mut shown: Vec<&Remedy> = Vec::new();
    for (line, remedy) in lines.zip(remedies) {
        out.push_str(&format!("{line}\n"));
        if let Some(remedy) = remedy {
            let last = shown.iter().rev().find(|shown| is_last(shown, remedy));
            let is_new = !last.is_some_and(|last| is_same_advice(last, remedy));
            shown.push(remedy);
            add_remedy(out, remedy, is_new, width, show_all);
        }
    }
}

/// Adds a remedy below its cause, each remedy only once. Unless everything is shown, a list of CPUs takes one line at
/// most.
fn add_remedy(out: &mut String, remedy: &Remedy, is_new: bool, width: usize, show_all: bool) {
    let text = match is_new {
        true => remedy_text(remedy),
        false if remedy.setting.is_empty() => "as above".to_owned(),
        false => format!("{}, as above", clean(&remedy.setting)),
    };
    let room = width.saturating_sub(7);
    let text = if show_all { text } else { with_short_lists(&text, room) };
    for (at, line) in wrap(&text, room).iter().enumerate() {
        let arrow = if at == 0 { paint(GREEN, "->") } else { "  ".to_owned() };
        out.push_str(&format!("    {arrow} {}\n", paint(DIM, line)));
    }
}

/// Cuts each list that is longer than a line after an element, and adds an ellipsis.
fn with_short_lists(text: &str, room: usize) -> String {
    let short = |word: &str| {
        let kept = word.char_indices().nth(room).map(|(end, _)| &word[..end - 3]);
        match kept.and_then(|kept| kept.rsplit_once(',')) {
            Some((kept, _)) => format!("{kept},..."),
            None => word.to_owned(),
        }
    };
    text.split(' ').map(short).collect::<Vec<_>>().join(" ")
}

/// Draws a share as a bar of at least one character.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
fn bar(share: f64, width: usize) -> String {
    let signs = (share.clamp(0.0, 1.0) * width as f64).ceil() as usize;
    "#".repeat(signs.min(width))
}

/// Colours the bar at the end of a line.
fn with_bar(line: &str) -> String {
    let rest = line.trim_end_matches('#');
    let bar = &line[rest.len()..];
    if bar.is_empty() { line.to_owned() } else { format!("{rest}{}", paint(BLUE, bar)) }
}

fn add_groups(out: &mut String, groups: &JitterGroups, width: usize) {
    add_heading(out, "Several CPUs at once");
    add_wrapped(out, &words::groups(groups), 2, width);
    let sizes = groups.sizes.iter().filter(|size| size.count > 0).take(12);
    let sizes: Vec<String> =
        sizes.map(|size| format!("{} CPUs {}", size.cpu_count, plural(size.count, "time"))).collect();
    if !sizes.is_empty() {
        add_wrapped(out, &format!("{}.", sizes.join(", ")), 2, width);
    }
    for (cpus, longest) in groups.worst.iter().take(GROUPS_MAX).filter_map(group_facts) {
        let (at, cpus) = (moment(longest.interruption.at_ns), cpu_list(&cpus, 60));
        let (length, cause) = (duration(longest.interruption.length_ns), label(&longest.cause));
        let text = format!("At {at}: CPUs {cpus}, longest {length} on CPU {}, {cause}", longest.cpu);
        lowlat_text::text::add_field(out, "-", &text, 2, width);
    }
}

/// Adds the source of the causes, the lost data and the cost of tracing.
fn add_source(out: &mut String, jitter: &Jitter<'_>, causes: &JitterCauses, width: usize) {
    out.push('\n');
    let mut sentences = vec![words::source(causes)];
    if jitter.study.all.count > 0 {
        sentences.push(words::looked_at(jitter.record, causes));
    }
    sentences.extend(words::lost(causes));
    sentences.extend(words::senders(causes));
    sentences.extend(words::smi(causes));
    sentences.extend(words::cost(jitter.record));
    add_dim(out, &sentences.join(" "), width);
}

pub fn add_counted(
    out: &mut String,
    jitter: &Jitter<'_>,
    causes: &JitterCauses,
    width: usize,
    show_all: bool,
) {
    add_heading(out, "Activity on the measured CPUs");
    add_wrapped(out, &words::source(causes), 2, width);
    let all = counters(causes);
    let shown = if show_all { all.len() } else { all.len().min(COUNTERS_MAX) };
    let rows = all.get(..shown).unwrap_or(&all);
    let core_seconds = jitter.study.all.core_seconds;
    if rows.is_empty() {
        add_wrapped(out, "No counter increased during the run.", 2, width);
    } else {
        out.push('\n');
        let table = Table::of(rows)
            .words("counter", 0, |of| label_within(&of.cause, if width >= 100 { 44 } else { 28 }))
            .words("CPUs", 2, |of| cpu_list(&of.cpus, 16))
            .figures("count", 0, |of| count(of.count))
            .figures("per s and CPU", 1, |of| {
                (core_seconds > 0.0).then(|| rate(of.count as f64 / core_seconds))
            })
            .figures("most, on CPU", 3, |of| format!("{}, {}", count(of.most.1), of.most.0));
        out.push_str(&table.text(width));
    }
    if shown < all.len() {
        add_dim(out, &format!("  and {} with smaller counts", plural(all.len() - shown, "counter")), width);
    }
    if let Some(sentence) = words::smi(causes) {
        add_dim(out, &format!("  {sentence}"), width);
    }
}

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
