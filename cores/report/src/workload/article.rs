//! The tables of the KeyarchOS article, with its published figures beside this host's.

use crate::workload::words::{judged, named, per_second, place, ratio, setting, times};
use lowlat_host::statistics::MedianInterval;
use lowlat_text::columns::{self, Column, Table};
use lowlat_text::text::{BOLD, add_wrapped, paint};
use lowlat_text::units::clean;
use lowlat_workload::article::{ExplainedGain, Factor, PUBLISHED, Part, Published, baseline};
use lowlat_workload::{Idle, WorkloadRecord};

/// Source of the published figures.
pub const SOURCE: &str = "Published: Inspur, KeyarchOS on Intel Xeon 6 E-cores, 2025-03-21. It changed the kernel's scheduler \
                          (figures 3 and 4) and counters (figure 5).";
/// Explanation of the summary's columns.
pub const LEGEND: &str = "Placement: fastest against slowest place. Idle: without idle states (cpu_dma_latency 0) against with them. \
                          Both: fastest against slowest of all. Shares are of the logarithm, because factors multiply.";

/// Formats the tables: the summary, then each published gain taken apart. Empty without a gain.
pub fn tables(record: &WorkloadRecord, has_clusters: bool, width: usize) -> String {
    let gains = gains(record);
    let mut out = if gains.is_empty() { String::new() } else { summary(&gains, width) };
    for (gain, explained) in &gains {
        out.push_str(&format!("\n{}\n", paint(BOLD, &title(gain))));
        out.push_str(&columns::table(table(record, gain, has_clusters), width));
        for line in sentences(gain, explained, has_clusters) {
            add_wrapped(&mut out, &clean(&line), 2, width);
        }
    }
    out
}

/// Published gains of which something was measured, each with what explains it.
pub fn gains(record: &WorkloadRecord) -> Vec<(&'static Published, Vec<ExplainedGain>)> {
    let is_measured = |gain: &&Published| {
        gain.rows.iter().any(|(workload, _)| record.cells.iter().any(|cell| cell.workload == *workload))
    };
    PUBLISHED.iter().filter(is_measured).map(|gain| (gain, gain.explained(record))).collect()
}

/// "Placement and idle states alone account for 4 of 6 published gains here".
pub fn headline(record: &WorkloadRecord) -> String {
    let gains = gains(record);
    if gains.iter().all(|(_, explained)| explained.is_empty()) {
        return "Nothing was measured".to_owned();
    }
    let whole = gains.iter().filter(|(_, explained)| {
        explained.iter().map(ExplainedGain::part).max().is_some_and(|part| part == Part::All)
    });
    format!(
        "Placement and idle states alone account for {} of {} published gains here",
        whole.count(),
        gains.len()
    )
}

/// "UnixBench Pipe-based Context Switching: published 12.21x (figure 5)".
pub fn title(gain: &Published) -> String {
    format!("{}: published {} ({})", gain.title, gain.text, gain.figure)
}

/// The workload that explains most of a gain.
pub fn best(explained: &[ExplainedGain]) -> Option<&ExplainedGain> {
    explained.iter().max_by(|a, b| a.share.total_cmp(&b.share))
}

/// A factor, or that no difference is shown.
pub fn factor(of: Option<&Factor>) -> String {
    of.map_or_else(|| "none shown".to_owned(), |of| ratio(&of.ratio))
}

fn summary(gains: &[(&'static Published, Vec<ExplainedGain>)], width: usize) -> String {
    type Gain = (&'static Published, Vec<ExplainedGain>);
    let of = |part: fn(&ExplainedGain) -> Option<&Factor>| {
        move |(_, explained): &Gain| best(explained).map(|best| factor(part(best)))
    };
    Table::of(gains)
        .words("gain", 0, |(gain, _)| gain.key.to_owned())
        .figures("published", 0, |(gain, _)| gain.text.to_owned())
        .figures("placement", 0, of(|one| one.placement.as_ref()))
        .figures("idle", 0, of(|one| one.idle.as_ref()))
        .figures("both", 1, of(|one| one.both.as_ref()))
        .figures("share", 0, |(_, explained)| best(explained).map(|best| share(best.share)))
        .text(width)
}

/// Formats a share as a percentage: "91 %".
pub fn share(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A row of a gain's table.
struct Row {
    workload: &'static str,
    copies: u32,
    place: &'static str,
    idle: Idle,
    rate: MedianInterval,
    /// Bytes per second, where the program reports them.
    bytes: Option<MedianInterval>,
    /// Ratio to the kernel's choice with idle states; `None` for that itself.
    ratio: Option<MedianInterval>,
}

/// Rows of a gain's table.
fn rows(record: &WorkloadRecord, gain: &Published, has_clusters: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for (workload, copies) in
        gain.rows.iter().flat_map(|(name, all)| all.iter().map(|copies| (*name, *copies)))
    {
        for of in gain.settings() {
            let Some(cell) = record.find(workload, copies, of) else { continue };
            let Some(rate) = record.rate(cell) else { continue };
            let base = record.cells.get(cell).map(baseline);
            let base = base.and_then(|base| record.find(workload, copies, base)).filter(|base| *base != cell);
            rows.push(Row {
                workload,
                copies,
                place: place(of.place, copies, has_clusters),
                idle: of.idle,
                rate,
                bytes: record.bytes(cell),
                ratio: base.and_then(|base| record.ratio(cell, base)),
            });
        }
    }
    rows
}

/// A row for each setting of a gain.
pub fn table(record: &WorkloadRecord, gain: &Published, has_clusters: bool) -> Vec<Column> {
    Table::of(&rows(record, gain, has_clusters))
        .words("workload", 0, |row| row.workload.to_owned())
        .figures("copies", 0, |row| row.copies.to_string())
        .words("place", 0, |row| row.place.to_owned())
        .words("idle", 0, |row| if row.idle == Idle::None { "no" } else { "yes" }.to_owned())
        .figures("per second", 0, |row| per_second(row.rate.median))
        .figures("transfer/s", 1, |row| row.bytes.map(|of| crate::workload::words::bytes(of.median)))
        .words("ratio to the first", 0, |row| row.ratio.as_ref().map_or_else(|| "1".to_owned(), ratio_marked))
        .into_columns()
}

/// A ratio, with "~" before it if it shows no difference.
fn ratio_marked(of: &MedianInterval) -> String {
    let text = judged(of);
    text.strip_suffix(", no difference shown").map_or_else(|| text.clone(), |ratio| format!("~{ratio}"))
}

/// One sentence for each workload of a gain: what placement and idle states explain.
pub fn sentences(gain: &Published, explained: &[ExplainedGain], has_clusters: bool) -> Vec<String> {
    if explained.is_empty() {
        return vec!["Not measured here.".to_owned()];
    }
    let of = |all: &[ExplainedGain]| best(all).map(|best| sentence(gain, best, has_clusters));
    explained.chunk_by(|a, b| a.workload == b.workload).filter_map(of).collect()
}

fn sentence(gain: &Published, of: &ExplainedGain, has_clusters: bool) -> String {
    let name = named(of.workload, of.copies);
    let words = |factor: &Factor| {
        let [fast, slow] = [factor.fast, factor.slow].map(|one| setting(one, of.copies, has_clusters));
        // If only idle states differ, the place is enough.
        if factor.fast.place == factor.slow.place { slow } else { format!("{fast} against {slow}") }
    };
    let cause = |alone: &str, [makes, shows]: [&str; 2], factor: Option<&Factor>| match factor {
        Some(factor) => format!(
            "{alone} {makes} {} ({}), {} of it",
            times(&factor.ratio),
            words(factor),
            share(factor.share(gain.factor))
        ),
        None => format!("{alone} {shows} no difference"),
    };
    let Some(both) = &of.both else {
        return format!(
            "{name}: no difference shown between places or idle states, so they explain nothing of the published {} here.",
            gain.text
        );
    };
    let conclusion = match of.part() {
        Part::All => "explain all of it here",
        Part::Most => "explain most of it here",
        Part::Some => "explain a smaller part of it here",
        Part::Nothing => "explain nothing of it here",
    };
    format!(
        "{name}, of the published {}: {}; {}. Together they make {} and {conclusion}.",
        gain.text,
        cause("placement alone", ["makes", "shows"], of.placement.as_ref()),
        cause("idle states alone", ["make", "show"], of.idle.as_ref()),
        times(&both.ratio)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload_text as text;
    use lowlat_workload::{Cell, CellRun, Missing, Place, Purpose, Setting};

    /// The pipe test as on a virtual machine without clusters, and messages without any difference.
    fn record() -> WorkloadRecord {
        let rates = [
            ("pipe", 1, Place::Kernel, Idle::Allowed, 45_000.0),
            ("pipe", 1, Place::One, Idle::Allowed, 450_000.0),
            ("pipe", 1, Place::Kernel, Idle::None, 350_000.0),
            ("msg-sysv", 4, Place::Kernel, Idle::Allowed, 1_000_000.0),
            ("msg-sysv", 4, Place::Spread, Idle::Allowed, 1_001_000.0),
        ];
        let mut record = WorkloadRecord { purpose: Purpose::Article, rounds: 7, ..WorkloadRecord::default() };
        for (number, (name, copies, place, idle, per_s)) in rates.into_iter().enumerate() {
            let setting = Setting { place, idle, ..Setting::default() };
            record.cells.push(Cell { workload: name.into(), copies, setting, ..Cell::default() });
            record.runs.extend((0..7_u32).map(|round| {
                let noise = 1.0 + 0.01 * f64::from((round * 2 + u32::try_from(number).unwrap()) % 5);
                let cell = u32::try_from(number).unwrap();
                CellRun { round, cell, per_s: per_s * noise, ..CellRun::default() }
            }));
        }
        let setting = Some(Setting { place: Place::Pack, ..Setting::default() });
        record.missing.push(Missing {
            workload: "pipe".into(),
            copies: Some(1),
            setting,
            why: "no clusters".into(),
        });
        record
    }

    #[test]
    fn each_gain_is_taken_apart_with_its_published_figure_beside_it() {
        let text = anstream::adapter::strip_str(&text(&record(), false, 80)).to_string();
        for wanted in [
            "Placement and idle states alone account for 1 of 2 published gains here\n",
            "System V Message Passing: published 2.75x (figure 5)\n",
            "pipe           1  same CPU         yes      459,",
            "pipe with place=pack: no clusters.",
        ] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in [
            "pipe, 1 copy, of the published 12.21x: placement alone makes 10.1x [9.6",
            "(same CPU against kernel's choice), 92 % of it",
            "idle states alone make 7.93x [7.55, 7.93] (kernel's choice), 83 % of it",
            "and explain all of it here.",
            "so they explain nothing of the published 2.75x here.",
        ] {
            assert!(flat.contains(wanted), "{wanted}\n{flat}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(headline(&WorkloadRecord::default()), "Nothing was measured");
    }
}
