//! Jitter in the summary of `assess`.

use crate::causes::words;
use crate::figures::JitterRun;
use crate::figures::{CpuFigures, Jitter};
use lowlat_host_report::cpu_parts::{CHOSEN_NOTE, CpuPart, CpuParts};
use lowlat_jitter::{CauseSource, JitterRecord};
use lowlat_text::text::{DIM, YELLOW, add_heading, add_wrapped, columns, paint};
use lowlat_text::units::{count, duration, percent, rate, span};

/// Highest number of CPUs shown; those with the longest interruptions are kept.
const CPUS_MAX: usize = 16;

/// Adds the figures of each CPU.
pub fn add(out: &mut String, run: &JitterRun<'_>, jitter: &Jitter<'_>, width: usize) {
    let all = jitter.cpus(&CpuParts::of(run.context.host, run.context.allocation));
    let (threshold, run) = (duration(jitter.record.threshold_ns), span(jitter.record.ran_ns()));
    add_heading(out, &format!("Interruptions of {threshold} or longer in {run}"));
    let mut shown: Vec<&CpuFigures<'_>> = all.iter().collect();
    shown.sort_by_key(|cpu| (std::cmp::Reverse(cpu.record.interruption_ns_max), cpu.record.cpu));
    shown.truncate(CPUS_MAX);
    shown.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    out.push_str(&table(&shown, width));
    if shown.iter().any(|cpu| cpu.part == CpuPart::Chosen) {
        out.push_str(&format!("  {}\n", paint(DIM, CHOSEN_NOTE)));
    }
    if let Some(sentence) = not_traced(jitter.record) {
        out.push_str(&format!("{}\n", paint(YELLOW, "  Causes were not traced.")));
        add_wrapped(out, &sentence, 2, width);
    }
    if shown.len() < all.len() {
        let text = format!("  and {} more with lower maxima, in the report", all.len() - shown.len());
        out.push_str(&format!("{}\n", paint(DIM, &text)));
    }
}

/// Returns why no interruption has a cause from the kernel's trace, or `None` if the trace was used.
pub fn not_traced(record: &JitterRecord) -> Option<String> {
    let causes = record.causes.as_ref()?;
    (causes.source != CauseSource::Trace).then(|| words::source(causes))
}

/// Formats jitter per CPU. Narrow terminals drop the share of time lost and some percentiles.
fn table(cpus: &[&CpuFigures<'_>], width: usize) -> String {
    let is_wide = width >= 80;
    let mut head = vec!["CPU", "part", "count", "per s"];
    head.extend(if is_wide { &["lost", "p50", "p99", "p99.9", "max"][..] } else { &["p99", "max"][..] });
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for cpu in cpus {
        let percentile = |q: f64| or_dash(cpu.percentile(q).map(duration));
        let mut row = vec![
            cpu.record.cpu.to_string(),
            cpu.part.word().to_owned(),
            count(cpu.record.interruption_count),
            or_dash(cpu.study.rate.map(|r| rate(r.per_s))),
        ];
        if is_wide {
            row.extend([or_dash(cpu.lost_percent().map(percent)), percentile(0.5), percentile(0.99)]);
            row.push(percentile(0.999));
        } else {
            row.push(percentile(0.99));
        }
        row.push(or_dash(cpu.study.length_ns_max.map(duration)));
        rows.push(row);
    }
    columns(&rows, &[0, 2, 3, 4, 5, 6, 7, 8], 2)
}
