//! A frame of the terminal: head, CPUs, host, events, keys. Every colour repeats what a word says.

mod cpus;
mod host;

use crate::watch::{
    event::{Event, Level},
    watcher::Watch,
};
use lowlat_host::printable;
use lowlat_text::{text, units};
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span, Text},
};

/// Display options that the user chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DisplayOptions {
    pub is_paused: bool,
    pub sort: Sort,
    /// CPUs above the first one shown.
    pub scroll: usize,
}

/// Order of the CPUs in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    #[default]
    Cpu,
    /// By verdict, the worst first.
    State,
    /// By interruptions, the most first.
    Rate,
}

impl Sort {
    /// The order after this one.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Cpu => Self::State,
            Self::State => Self::Rate,
            Self::Rate => Self::Cpu,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::State => "state",
            Self::Rate => "rate",
        }
    }
}

/// Rows below which CPUs and events share the space.
const EVENTS_MIN: usize = 3;
/// Columns of a time of day and of a subject, with the space behind each.
const TIME_WIDTH: usize = 10;

/// Draws the frame: exactly `height` lines, of which the last one names the keys.
pub fn frame(watch: &Watch, view: &DisplayOptions, width: u16, height: u16) -> Text<'static> {
    let (width, height) = (usize::from(width), usize::from(height));
    let mut lines = head(watch, view, width);
    let host = host::lines(watch, width);
    // Rules above CPUs, host and events, the head of the table, and the keys.
    let fixed = lines.len() + host.len() + 5;
    let space = height.saturating_sub(fixed);
    let events_min = EVENTS_MIN.min(space / 3);
    let cpu_count = watch.rows.len().min(space - events_min).max(1);
    lines.extend(cpus::lines(watch, view, width, cpu_count));
    lines.push(rule("Host", "", width));
    lines.extend(host);
    lines.push(rule("Events", "newest first", width));
    lines.extend(events(watch, width));
    // A terminal with few rows shows only the first parts.
    lines.resize(height.saturating_sub(1), Line::default());
    if height > 0 {
        lines.push(keys(view));
    }
    Text::from(lines)
}

/// One frame as text, with all CPUs and without colours.
pub fn plain_text(watch: &Watch, width: usize) -> String {
    let view = DisplayOptions::default();
    let mut lines = head(watch, &view, width);
    lines.extend(cpus::lines(watch, &view, width, watch.rows.len()));
    lines.push(rule("Host", "", width));
    lines.extend(host::lines(watch, width));
    let events = events(watch, width);
    if !events.is_empty() {
        lines.push(rule("Events", "newest first", width));
        lines.extend(events);
    }
    let lines: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
    lines.join("\n")
}

fn head(watch: &Watch, view: &DisplayOptions, width: usize) -> Vec<Line<'static>> {
    let subject = &watch.subject;
    let mut title = vec![bold("lowlat watch"), Span::raw("  "), Span::raw(safe(&subject.host))];
    let state = if view.is_paused {
        Span::styled("PAUSED", Style::new().add_modifier(Modifier::REVERSED))
    } else {
        dim("live")
    };
    let clock = match watch.interval_count {
        0 => "reading the first interval ".to_owned(),
        _ => format!("{} UTC ", time_of_day(watch.last.at_unix_ms)),
    };
    right(&mut title, vec![dim(&clock), state], width);
    let of_what = match (subject.is_isolated, subject.quiet.is_empty()) {
        (true, _) => "isolated ",
        (false, true) => "all ",
        (false, false) => "",
    };
    let source = if subject.is_sampling { "sampled" } else { "kernel counters" };
    let what = format!("{of_what}{:#}, every {}, {source}", subject.cpus, units::span(subject.every_ns));
    let cost = if watch.last.interval.elapsed_ns == 0 {
        String::new()
    } else {
        let interval = &watch.last.interval;
        let share = interval.own_cpu_ns as f64 * 100.0 / interval.elapsed_ns as f64;
        format!("own cost {share:.1} % of a CPU")
    };
    let mut second = vec![Span::raw(text::cut(&what, width.saturating_sub(cost.len() + 2)))];
    right(&mut second, vec![Span::raw(cost)], width);
    let mut lines = vec![Line::from(title), Line::from(second)];
    if let Some(reason) = &watch.no_causes {
        let reason = format!("no causes: {reason}");
        lines.push(Line::from(Span::styled(text::cut(&safe(&reason), width), Level::Warning.style())));
    }
    lines
}

fn keys(view: &DisplayOptions) -> Line<'static> {
    let sort = format!("sort by {}", view.sort.next().word());
    let pause = if view.is_paused { "resume" } else { "pause" };
    let mut spans = Vec::new();
    for (key, what) in [("q", "quit"), ("p", pause), ("s", sort.as_str()), ("up/down", "scroll")] {
        spans.extend([bold(key), Span::raw(format!(" {what}   "))]);
    }
    Line::from(spans)
}

/// Events, the newest first; long ones are wrapped.
fn events(watch: &Watch, width: usize) -> Vec<Line<'static>> {
    let subjects = watch.events.iter().map(|event| safe(&event.subject).chars().count());
    let subject_width = subjects.max().unwrap_or(0).min(width / 3) + 2;
    watch.events.iter().flat_map(|event| event_lines(event, subject_width, width)).collect()
}

fn event_lines(event: &Event, subject_width: usize, width: usize) -> Vec<Line<'static>> {
    let indent = TIME_WIDTH + subject_width;
    let subject = text::cut(&safe(&event.subject), subject_width - 2);
    let words = wrapped(&event.text, width.saturating_sub(indent));
    let mut lines = Vec::new();
    for (number, words) in words.into_iter().enumerate() {
        let start = if number == 0 {
            vec![
                dim(&format!("{:<TIME_WIDTH$}", time_of_day(event.at_unix_ms))),
                Span::raw(format!("{subject:<subject_width$}")),
            ]
        } else {
            vec![Span::raw(" ".repeat(indent))]
        };
        let words = Span::styled(words, event.level.style());
        lines.push(start.into_iter().chain([words]).collect());
    }
    lines
}

impl Level {
    fn style(self) -> Style {
        match self {
            Self::Info => Style::new(),
            Self::Warning => Style::new().fg(Color::Yellow),
            Self::Fault => Style::new().fg(Color::Red),
        }
    }
}

/// A heading with a line to the right margin, and a note there.
fn rule(title: &str, note: &str, width: usize) -> Line<'static> {
    let note = text::cut(note, width.saturating_sub(title.chars().count() + 3));
    let note = if note.is_empty() { note } else { format!(" {note}") };
    let used = title.chars().count() + note.chars().count() + 1;
    let line = format!(" {}", "─".repeat(width.saturating_sub(used)));
    Line::from(vec![bold(title), dim(&line), dim(&note)])
}

/// Puts spans at the right margin, if there is space.
fn right(spans: &mut Vec<Span<'static>>, end: Vec<Span<'static>>, width: usize) {
    let used = |spans: &[Span<'_>]| spans.iter().map(Span::width).sum::<usize>();
    let space = width.saturating_sub(used(spans) + used(&end));
    if space > 0 {
        spans.push(Span::raw(" ".repeat(space)));
        spans.extend(end);
    }
}

fn bold(words: &str) -> Span<'static> {
    Span::styled(words.to_owned(), Style::new().add_modifier(Modifier::BOLD))
}

fn dim(words: &str) -> Span<'static> {
    Span::styled(words.to_owned(), Style::new().add_modifier(Modifier::DIM))
}

/// Text from outside on one line, without control characters.
fn safe(words: &str) -> String {
    printable::line(words).into_owned()
}

/// Text from outside, wrapped between words.
fn wrapped(words: &str, width: usize) -> Vec<String> {
    text::wrap(&safe(words), width.max(1))
}

/// Formats the UTC time of day: "14:03:07".
fn time_of_day(unix_ms: u64) -> String {
    let second = unix_ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}
