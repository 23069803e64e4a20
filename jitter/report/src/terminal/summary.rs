//! Jitter in the summary of `assess`.

use crate::causes::words;
use crate::figures::JitterRun;
use crate::figures::{CpuFigures, Jitter};
use lowlat_host_report::cpu_parts::{CHOSEN_NOTE, CpuPart, CpuParts};
use lowlat_jitter::{CauseSource, JitterRecord};
use lowlat_text::columns::Table;
use lowlat_text::text::{DIM, YELLOW, add_heading, add_wrapped, paint};
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
    let percentile = |quantile| move |cpu: &&CpuFigures<'_>| cpu.percentile(quantile).map(duration);
    let mut table = Table::of(cpus)
        .figures("CPU", 0, |cpu| cpu.record.cpu.to_string())
        .words("part", 0, |cpu| cpu.part.word().to_owned())
        .figures("count", 0, |cpu| count(cpu.record.interruption_count))
        .figures("per s", 0, |cpu| cpu.study.rate.map(|r| rate(r.per_s)));
    if is_wide {
        table = table.figures("lost", 0, |cpu| cpu.lost_percent().map(percent));
        table = table.figures("p50", 0, percentile(0.5));
    }
    table = table.figures("p99", 0, percentile(0.99));
    if is_wide {
        table = table.figures("p99.9", 0, percentile(0.999));
    }
    table.figures("max", 0, |cpu| cpu.study.length_ns_max.map(duration)).text(width)
}
