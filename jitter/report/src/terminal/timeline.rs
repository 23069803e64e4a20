//! Timeline of one interruption.

use crate::causes::ranked::{Ranked, ranked};
use crate::causes::spans::{Span, spans};
use crate::causes::words::{cpu_list, group_facts, moment, sent_by};
use crate::causes::{is_same_advice, label, label_within, remedy_text, study_of};
use crate::figures::Jitter;
use crate::figures::JitterRun;
use lowlat_host_report::cpu_parts::CpuParts;
use lowlat_jitter::{CauseStudy, Explained, JitterCauses, Remedy, TimelineChange};
use lowlat_text::text::{
    BLUE, BOLD, DIM, GREEN, RED, add_field, add_heading, add_painted, add_wrapped, cut, paint, usable,
};
use lowlat_text::units::{count, duration, percent, plural};

/// Width of the widest bar.
const BAR_MAX: usize = 40;
/// Columns for a step's length.
const TOOK_WIDTH: usize = 24;
/// Highest indentation level of a step.
const DEPTH_MAX: usize = 10;

/// Formats the timeline of the interruption of a rank. Rank 1 is the longest.
///
/// # Errors
/// Returns a sentence for the user if the document has no such interruption.
pub fn explain_text(run: &JitterRun<'_>, rank: usize, width: usize) -> Result<String, String> {
    let width = usable(width);
    let jitter = Jitter::of(run).ok_or("the document has no jitter measurement")?;
    let of = find(&jitter, rank)?;
    let mut out = String::new();
    let part = CpuParts::of(run.context.host, run.context.allocation).get(of.cpu);
    let (length, at) = (duration(of.interruption.length_ns), moment(of.interruption.at_ns));
    let title = format!("Interruption of {length} on CPU {} ({}), at {at} of the run", of.cpu, part.phrase());
    add_painted(&mut out, BOLD, &title, 0, width);
    match of.explained {
        Some(explained) => add_story(&mut out, &of, explained, &jitter, width),
        None => add_wrapped(&mut out, &why_not(&jitter), 2, width),
    }
    Ok(out)
}

/// Returns the interruption of a rank, or a sentence that says which ranks exist.
fn find<'a>(jitter: &Jitter<'a>, rank: usize) -> Result<Ranked<'a>, String> {
    let kept: usize = jitter.record.cpus.iter().map(|of| of.worst.len()).sum();
    let at = rank.checked_sub(1).ok_or("ranks start at 1, the longest interruption")?;
    let missing =
        || format!("there is no interruption of rank {rank}: the document keeps the {kept} longest");
    ranked(jitter.record, |_| true, rank.min(kept)).into_iter().nth(at).ok_or_else(missing)
}

fn why_not(jitter: &Jitter<'_>) -> String {
    match &jitter.record.causes {
        Some(causes) if causes.source == lowlat_jitter::CauseSource::Trace => {
            "Its timeline is missing: it could not be compared with the trace.".to_owned()
        }
        Some(causes) => crate::causes::words::source(causes),
        None => "The document is from a version of lowlat without causes.".to_owned(),
    }
}

fn add_story(out: &mut String, of: &Ranked<'_>, explained: &Explained, jitter: &Jitter<'_>, width: usize) {
    add_parts(out, explained, width);
    let spans = spans(explained);
    if !spans.is_empty() {
        add_steps(out, &spans, explained, jitter.record.causes.as_ref(), width);
    }
    add_group(out, of, width);
    add_remedies(out, explained, &jitter.study.causes, width);
}

fn add_parts(out: &mut String, explained: &Explained, width: usize) {
    add_heading(out, "Parts");
    let length = explained.interruption.length_ns.max(1) as f64;
    let names: Vec<String> =
        explained.parts.iter().map(|part| label_within(&part.cause, width / 2)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let bar_width = width.saturating_sub(name_width + 24).clamp(4, BAR_MAX);
    for (part, name) in explained.parts.iter().zip(&names) {
        let share = (part.ns as f64 / length).min(1.0);
        let padding = " ".repeat(name_width - name.chars().count());
        let figures = format!("{:>8}  {:>7}", duration(part.ns), percent(share * 100.0));
        out.push_str(&format!("  {name}{padding}  {figures}  {}\n", paint(BLUE, &bar(share, bar_width))));
    }
}

/// Draws a share as a bar of at least one character.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
fn bar(share: f64, width: usize) -> String {
    "#".repeat(((share * width as f64).round() as usize).clamp(1, width))
}

/// Adds a line for each activity: start, name, length; nested ones are indented.
fn add_steps(
    out: &mut String,
    spans: &[Span<'_>],
    explained: &Explained,
    causes: Option<&JitterCauses>,
    width: usize,
) {
    add_heading(out, "Steps: start in ns, activity, length including nested activities");
    let offsets: Vec<String> = spans.iter().map(|span| offset(span.offset_ns)).collect();
    let offset_width = offsets.iter().map(String::len).max().unwrap_or(0);
    let room = width.saturating_sub(offset_width + TOOK_WIDTH + 6);
    let names: Vec<String> = spans.iter().map(|span| name(span, room)).collect();
    let name_width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for ((span, offset), name) in spans.iter().zip(&offsets).zip(&names) {
        let padding = " ".repeat(name_width - name.chars().count());
        let name = match span.kind {
            TimelineChange::Returns => paint(GREEN, name),
            TimelineChange::Lost => paint(RED, name),
            _ => name.clone(),
        };
        let end = match span.kind {
            TimelineChange::Begins => {
                format!("{padding}  {:>8}{}", duration(span.took_ns), qualifier(span, explained))
            }
            _ => String::new(),
        };
        out.push_str(&format!("  {}  {name}{end}\n", paint(DIM, &format!("{offset:>offset_width$}"))));
        if let Some(text) = sent_by(causes, span.sender) {
            let indent = offset_width + 4 + 2 * span.depth.min(DEPTH_MAX);
            let text = cut(&text, width.saturating_sub(indent + 2));
            out.push_str(&format!("{:indent$}  {}\n", "", paint(DIM, &text)));
        }
    }
    if explained.timeline_cut_count > 0 {
        let left = count(explained.timeline_cut_count);
        crate::terminal::add_dim(out, &format!("  {left} more steps were not kept"), width);
    }
}

/// Returns the qualifier of a step's length if its end is unknown.
fn qualifier(span: &Span<'_>, explained: &Explained) -> &'static str {
    match (span.is_open, explained.timeline_cut_count) {
        (false, _) => "",
        (true, 0) => " until the end",
        (true, _) => " or more",
    }
}

/// Returns the name of an activity, indented by its depth.
fn name(span: &Span<'_>, room: usize) -> String {
    let indent = 2 * span.depth.min(DEPTH_MAX);
    let room = room.saturating_sub(indent).max(4);
    let text = match span.kind {
        TimelineChange::Returns => cut("the measured thread runs again", room),
        TimelineChange::Lost => cut("events are missing before this moment", room),
        _ => label_within(span.cause, room),
    };
    format!("{:indent$}{text}", "")
}

/// Formats an offset with its sign: "+1,204".
fn offset(ns: i64) -> String {
    let sign = if ns < 0 { '-' } else { '+' };
    format!("{sign}{}", count(ns.unsigned_abs()))
}

fn add_group(out: &mut String, of: &Ranked<'_>, width: usize) {
    let Some(group) = of.group else { return };
    let Some((cpus, _)) = group_facts(group).filter(|(cpus, _)| cpus.len() > 1) else { return };
    add_heading(out, "At the same time");
    let text = format!("{} were interrupted together: {}.", plural(cpus.len(), "CPU"), cpu_list(&cpus, 200));
    add_wrapped(out, &text, 2, width);
    for member in group.members.iter().filter(|member| member.cpu != of.cpu).take(8) {
        let length = duration(member.interruption.length_ns);
        let text = format!("CPU {} for {length}: {}", member.cpu, label(&member.cause));
        add_field(out, "-", &text, 2, width);
    }
}

fn add_remedies(out: &mut String, explained: &Explained, causes: &[CauseStudy], width: usize) {
    let mut seen: Vec<&Remedy> = Vec::new();
    for part in &explained.parts {
        let Some(remedy) = study_of(causes, &part.cause).and_then(|of| of.remedy.as_ref()) else { continue };
        if seen.iter().any(|seen| is_same_advice(seen, remedy)) {
            continue;
        }
        if seen.is_empty() {
            add_heading(out, "Remedy");
        }
        seen.push(remedy);
        add_field(out, "-", &remedy_text(remedy), 2, width);
    }
}
