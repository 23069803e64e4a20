//! Table of CPUs.

use crate::figures::JitterRun;
use crate::figures::{CpuFigures, Jitter, ROUGH_BELOW, percentile};
use lowlat_host::statistics::RateInterval;
use lowlat_host_report::cpu_parts::{CHOSEN_NOTE, CpuPart, CpuParts};
use lowlat_jitter::Percentile;
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

/// Row: one CPU, or all of them.
struct Row<'a> {
    cpu: String,
    part: &'a str,
    count: u64,
    rate: Option<RateInterval>,
    lost_share: Option<f64>,
    lengths: &'a [Percentile],
    times: &'a [Percentile],
    longest: Option<u64>,
}

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
    let title = if is_cut {
        format!("{CPUS_MAX} of {} with the longest interruptions", plural(cpu_count, "CPU"))
    } else {
        "Per CPU".to_owned()
    };
    add_heading(out, &title);
    let mut rows: Vec<Row<'_>> = all.iter().map(row).collect();
    let sum = &jitter.study.all;
    if cpu_count > 1 {
        rows.push(Row {
            cpu: "all".to_owned(),
            part: "",
            count: sum.count,
            rate: sum.rate,
            lost_share: sum.lost_share,
            lengths: &sum.percentiles,
            times: &sum.time_percentiles,
            longest: sum.length_ns_max,
        });
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

fn row<'a>(cpu: &'a CpuFigures<'_>) -> Row<'a> {
    Row {
        cpu: cpu.record.cpu.to_string(),
        part: cpu.part.word(),
        count: cpu.study.count,
        rate: cpu.study.rate,
        lost_share: cpu.study.lost_share,
        lengths: &cpu.study.percentiles,
        times: &cpu.study.time_percentiles,
        longest: cpu.study.length_ns_max,
    }
}

/// Returns the table with all possible columns.
fn table<'a>(rows: &'a [Row<'a>]) -> Table<'a, Row<'a>> {
    let length = |quantile| move |row: &Row<'_>| percentile(row.lengths, quantile).map(duration);
    let wait = |quantile| move |row: &Row<'_>| percentile(row.times, quantile).map(wait_text);
    let interval = |row: &Row<'_>| match row.rate {
        Some(of) if row.count < ROUGH_BELOW => {
            format!("{} to {}", rate(of.per_s_low), rate(of.per_s_high))
        }
        _ => String::new(),
    };
    Table::of(rows)
        .figures("CPU", 0, |row| row.cpu.clone())
        .words("part", 3, |row| row.part.to_owned())
        .figures("count", 0, |row| count(row.count))
        .figures("per s", 1, |row| row.rate.map(|of| rate(of.per_s)))
        .figures("95 % interval", 4, interval)
        .figures("lost", 4, |row| row.lost_share.map(|share| percent(share * 100.0)))
        .figures("p50", 7, length(0.5))
        .figures("p99", 2, length(0.99))
        .figures("p99.9", 5, length(0.999))
        .figures("max", 0, |row| row.longest.map(duration))
        .figures("t99.9", 9, wait(0.999))
        .figures("t99.99", 6, wait(0.999_9))
        .figures("t99.999", 8, wait(0.999_99))
}

/// Formats a wait; no wait is 0.
fn wait_text(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { duration(ns) }
}
