//! One run as text.

use crate::pipeline::terminal::{
    add_headline, add_warnings, figures_table, record_load_words, stages, whole, wire::add_wire,
};
use lowlat_pipeline::{Balance, PipelineDocument, PipelineRecord};
use lowlat_text::columns::Table;
use lowlat_text::text::{BOLD, YELLOW, add_detail, add_heading, add_sentences, paint, usable};
use lowlat_text::units::{clean, count, duration, plural, rate, size};

/// Results of a run: headline, latencies by stage, resource use, doubts.
pub fn pipeline_text(document: &PipelineDocument, width: usize) -> String {
    let width = usable(width);
    let record = &document.record;
    let mut out = String::new();
    add_headline(&mut out, &run_headline(record), width);
    add_detail(&mut out, &run_counts(record), width);
    add_detail(&mut out, &balance(record), width);
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The run was interrupted; the results so far are shown."));
        out.push('\n');
    }
    // Tick to trade has the stages of tick to order among its parts.
    if record.wire.as_ref().is_none_or(|wire| wire.stages.tick_to_trade.count == 0) {
        add_heading(&mut out, "Latency");
        out.push_str(&figures_table(&stages(&record.stages)).text(width));
    }
    if let Some(wire) = &record.wire {
        add_wire(&mut out, wire, width);
    }
    if !record.uses.is_empty() {
        add_heading(&mut out, "Processes");
        out.push_str(&uses(record, width));
    }
    add_detail(&mut out, &wakes(record), width);
    add_sentences(&mut out, (BOLD, "Findings"), &record.findings, width);
    add_warnings(&mut out, &record.warnings, width);
    out
}

/// Headline such as "80 strategies, 800 quotes/s, parked: tick to order 41.2 us at p50, 118 us at p99".
pub fn run_headline(record: &PipelineRecord) -> String {
    let wire = record.wire.as_ref().map(|wire| &wire.stages.tick_to_trade).filter(|of| of.count > 0);
    let what = if wire.is_some() { "tick to trade" } else { "tick to order" };
    let shown = wire.unwrap_or(&record.stages.t2o);
    let said = match (shown.p50_ns, shown.p99_ns, shown.mean_ns) {
        (Some(p50), Some(p99), _) => format!("{what} {} at p50, {} at p99", duration(p50), duration(p99)),
        (Some(p50), None, _) => format!("{what} {} at p50", duration(p50)),
        (None, _, Some(mean)) => format!("{what} {} on average", duration(whole(mean))),
        (None, _, None) => "no order was measured".to_owned(),
    };
    format!("{}: {said}", record_load_words(record))
}

/// Counts such as "8,000 ticks in 10.0 s, 8,000 orders".
pub fn run_counts(record: &PipelineRecord) -> String {
    let late = record.ticks_scheduled.saturating_sub(record.ticks_published);
    let late = if late > 0 { format!(" of {} due", count(record.ticks_scheduled)) } else { String::new() };
    format!(
        "{}{late} in {:.1} s, {}, {}; {} rejected, {} lost",
        plural(record.ticks_published, "tick"),
        record.measured_s,
        plural(record.orders, "order"),
        plural(record.answers, "answer"),
        count(record.rejected),
        count(record.lost)
    )
}

/// Counts of the other side, such as "Strategies received 8,000 quotes and 16,000 answers, of which 8,000 are fills".
pub fn balance(record: &PipelineRecord) -> String {
    let Balance { quotes, answers, fills, cancelled, .. } = &record.balance;
    let unfilled = if *cancelled > 0 { format!(", {} cancelled", count(*cancelled)) } else { String::new() };
    format!(
        "Strategies received {} and {}; {}{unfilled}",
        plural(quotes.received, "quote"),
        plural(answers.received, "answer"),
        plural(*fills, "fill")
    )
}

fn wakes(record: &PipelineRecord) -> String {
    let per_tick = match record.ticks_published {
        0 => String::new(),
        ticks => format!(" ({} per tick)", rate(record.wakes as f64 / ticks as f64)),
    };
    let backing: Vec<String> =
        record.backing_bytes.iter().map(|(kind, bytes)| format!("{} in {kind}", size(*bytes))).collect();
    let memory = if backing.is_empty() { String::new() } else { format!("; memory: {}", backing.join(", ")) };
    let ready =
        if record.ready_s > 0.0 { format!("; ready in {:.1} s", record.ready_s) } else { String::new() };
    format!("{} wakes{per_tick}, {} missed{memory}{ready}", count(record.wakes), count(record.missed_wakes))
}

fn uses(record: &PipelineRecord, width: usize) -> String {
    let by_s = record.busy_by_s();
    Table::of(&record.uses)
        .words("role", 0, |of| clean(&of.role))
        .figures("processes", 2, |of| count(u64::from(of.processes)))
        .figures("CPU", 0, |of| (by_s > 0.0).then(|| format!("{:.1} %", of.cpu_s * 100.0 / by_s)))
        .figures("waited", 1, |of| count(of.voluntary_switches))
        .figures("displaced", 1, |of| count(of.involuntary_switches))
        .figures("faults", 0, |of| count(of.minor_faults))
        .figures("from disk", 3, |of| count(of.major_faults))
        .figures("own memory", 2, |of| of.private_bytes_max.map(size))
        .text(width)
}
