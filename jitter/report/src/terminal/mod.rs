//! Jitter run as terminal text.

mod causes;
mod cpus;
mod gate;
mod lengths;
mod live;
pub mod summary;
mod timeline;

pub use gate::{add_judged, add_note, gate_text};
pub use live::{LiveCpu, LiveView, live_lines};
pub use timeline::explain_text;

use crate::causes::words;
use crate::figures::Jitter;
use crate::figures::JitterRun;
use lowlat_jitter::{CauseSource, JitterRecord};
use lowlat_text::text::{BOLD, DIM, YELLOW, add_field, add_heading, add_painted, add_wrapped, paint, usable};
use lowlat_text::units::{clean, count, duration_fine};

/// Highest number of warnings shown without --verbose.
const WARNINGS_MAX: usize = 8;

/// Options of a jitter run's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitterTextOptions {
    /// True to show every CPU, cause and warning.
    pub show_all: bool,
    pub width: usize,
}

/// Formats a jitter run: headline, CPUs, lengths, causes with remedies, warnings.
pub fn jitter_text(run: &JitterRun<'_>, warnings: &[String], options: JitterTextOptions) -> String {
    let width = usable(options.width);
    let mut out = String::new();
    let Some(jitter) = Jitter::of(run) else {
        return "Jitter was not measured in this run.\n".to_owned();
    };
    let record = jitter.record;
    add_painted(&mut out, BOLD, &words::headline(record, run.context.allocation), 0, width);
    add_dim(&mut out, &counter_line(record), width);
    if run.is_interrupted {
        out.push_str(&paint(YELLOW, "The run was interrupted; its results up to then are shown."));
        out.push('\n');
    }
    let stop = words::stop(record);
    if !stop.is_empty() {
        add_heading(&mut out, "Stop");
        for sentence in &stop {
            add_wrapped(&mut out, sentence, 2, width);
        }
    }
    cpus::add(&mut out, run, &jitter, width, options.show_all);
    lengths::add(&mut out, &jitter, width);
    if let Some(sentence) = words::beside_the_guide(&jitter.study) {
        add_dim(&mut out, &format!("  {sentence}"), width);
    }
    match record.causes.as_ref().map(|causes| (causes.source, causes)) {
        Some((CauseSource::Trace, traced)) => {
            causes::add_traced(&mut out, &jitter, traced, width, options.show_all);
        }
        Some((CauseSource::Counters, counted)) => {
            causes::add_counted(&mut out, &jitter, counted, width, options.show_all);
        }
        Some((CauseSource::Off, off)) if !off.reason.is_empty() => {
            add_heading(&mut out, "Causes");
            add_wrapped(&mut out, &words::source(off), 2, width);
        }
        _ => {}
    }
    add_readiness(&mut out, run, width);
    add_warnings(&mut out, warnings, width, options.show_all);
    out
}

/// Describes the counter, the loop's period and the samplers' priority.
fn counter_line(record: &JitterRecord) -> String {
    let slowest = record.cpus.iter().map(|cpu| cpu.loop_period_ns).fold(0.0, f64::max);
    let (mhz, source) = (count(record.counter_hz / 1_000_000), clean(&record.counter_hz_source));
    let mut text = format!("Counter at {mhz} MHz ({source})");
    if slowest > 0.0 {
        text.push_str(&format!(", loop period up to {}", duration_fine(slowest)));
    }
    if let Some(policy) = &record.real_time {
        text.push_str(&format!(", samplers {}", clean(policy)));
    }
    text.push('.');
    text
}

/// Adds wrapped, dimmed text with the indent of its first line.
pub fn add_dim(out: &mut String, text: &str, width: usize) {
    let indent = text.len() - text.trim_start().len();
    for line in lowlat_text::text::wrap(text, width.saturating_sub(indent)) {
        out.push_str(&paint(DIM, &format!("{:indent$}{line}", "")));
        out.push('\n');
    }
}

/// Adds the points that were not ready or could not be checked, if any.
fn add_readiness(out: &mut String, run: &JitterRun<'_>, width: usize) {
    let open = words::not_ready(run.readiness);
    if open.is_empty() {
        return;
    }
    add_heading(out, words::readiness_title(run.readiness));
    for sentence in open {
        add_field(out, "-", &clean(&sentence), 2, width);
    }
}

fn add_warnings(out: &mut String, warnings: &[String], width: usize, show_all: bool) {
    if warnings.is_empty() {
        return;
    }
    add_heading(out, "Warnings");
    let shown = if show_all { warnings.len() } else { WARNINGS_MAX };
    for warning in warnings.iter().take(shown) {
        add_field(out, "-", &clean(warning), 2, width);
    }
    if warnings.len() > shown {
        add_dim(out, &format!("  and {} more in the result document", warnings.len() - shown), width);
    }
}
