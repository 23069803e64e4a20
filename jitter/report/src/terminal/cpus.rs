//! Table of CPUs.

use crate::figures::JitterRun;
use crate::figures::{Jitter, ROUGH_BELOW, percentile};
use lowlat_host_report::cpu_parts::{CHOSEN_NOTE, CpuPart, CpuParts};
use lowlat_jitter::CpuStudy;
use lowlat_text::columns::Table;
use lowlat_text::text::add_heading;
use lowlat_text::units::{clean, count, duration, percent, plural, rate};

/// Highest number of CPUs shown without --verbose: those with the longest interruptions.
const CPUS_MAX: usize = 10;
/// Number of CPUs from which the table is cut; leaving out only one or two would save nothing.
const CPUS_FREE: usize = 16;

/// Explanation of the percentiles of time.
const TIME_NOTE: &str = "Columns p are percentiles of lengths. Columns t are percentiles of time: at that share of \
                         moments, a thread that needs the CPU waits at most this long; 0 means no wait.";

/// Row: one CPU, or all of them, with the words in its first columns.
type Row<'a> = (String, &'a str, &'a CpuStudy);

/// Adds the table: the worst CPUs or all, and the sum.
pub fn add(out: &mut String, run: &JitterRun<'_>, jitter: &Jitter<'_>, width: usize, show_all: bool) {
    let mut all = jitter.cpus(&CpuParts::of(run.context.host, run.context.allocation));
    let cpu_count = all.len();
    if cpu_count == 0 {
        return;
    }
    let is_cut = !show_all && cpu_count > CPUS_FREE;
    if is_cut {
        all.sort_by_key(|cpu| (std::cmp::Reverse(cpu.record.interruption_ns_max), cpu.record.cpu));
        all.truncate(CPUS_MAX);
    } else {
        all.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    }
    let worst = format!("{CPUS_MAX} of {} with the longest interruptions", plural(cpu_count, "CPU"));
    add_heading(out, if is_cut { &worst } else { "Per CPU" });
    let mut rows: Vec<Row<'_>> =
        all.iter().map(|cpu| (cpu.record.cpu.to_string(), cpu.part.word(), cpu.study)).collect();
    let sum = &jitter.study.all;
    let sum = CpuStudy {
        count: sum.count,
        rate: sum.rate,
        lost_share: sum.lost_share,
        length_ns_max: sum.length_ns_max,
        percentiles: sum.percentiles.clone(),
        time_percentiles: sum.time_percentiles.clone(),
        ..CpuStudy::default()
    };
    if cpu_count > 1 {
        rows.push(("all".to_owned(), "", &sum));
    }
    let text = table(&rows).text(width);
    out.push_str(&text);
    if text.lines().next().is_some_and(|head| head.contains("t99")) {
        crate::terminal::add_dim(out, TIME_NOTE, width);
    }
    if all.iter().any(|cpu| cpu.part == CpuPart::Chosen) {
        crate::terminal::add_dim(out, CHOSEN_NOTE, width);
    }
    for cpu in all.iter().filter(|cpu| cpu.record.interruption_count > 0) {
        if let Err(why) = &cpu.lengths {
            crate::terminal::add_dim(out, &format!("  CPU {}: {}.", cpu.record.cpu, clean(why)), width);
        }
    }
}

/// Returns the table with all possible columns.
fn table<'a>(rows: &'a [Row<'a>]) -> Table<'a, Row<'a>> {
    let length = |quantile| move |(.., of): &Row<'_>| percentile(&of.percentiles, quantile).map(duration);
    let wait = |quantile| move |(.., of): &Row<'_>| percentile(&of.time_percentiles, quantile).map(wait_text);
    let interval = |(.., of): &Row<'_>| match of.rate {
        Some(rough) if of.count < ROUGH_BELOW => {
            format!("{} to {}", rate(rough.per_s_low), rate(rough.per_s_high))
        }
        _ => String::new(),
    };
    Table::of(rows)
        .figures("CPU", 0, |(cpu, ..)| cpu.clone())
        .words("part", 3, |(_, part, _)| (*part).to_owned())
        .figures("count", 0, |(.., of)| count(of.count))
        .figures("per s", 1, |(.., of)| of.rate.map(|of| rate(of.per_s)))
        .figures("95 % interval", 4, interval)
        .figures("lost", 4, |(.., of)| of.lost_share.map(|share| percent(share * 100.0)))
        .figures("p50", 7, length(0.5))
        .figures("p99", 2, length(0.99))
        .figures("p99.9", 5, length(0.999))
        .figures("max", 0, |(.., of)| of.length_ns_max.map(duration))
        .figures("t99.9", 9, wait(0.999))
        .figures("t99.99", 6, wait(0.999_9))
        .figures("t99.999", 8, wait(0.999_99))
}

/// Formats a wait; no wait is 0.
fn wait_text(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { duration(ns) }
}
