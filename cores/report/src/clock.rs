//! The clock of each core under load.

use lowlat_cache::clock::{ClockMeasurement, ClockRange, ClockRecord, CpuClock};
use lowlat_host::CpuSet;
use lowlat_text::article::Article;
use lowlat_text::columns::Table;
use lowlat_text::units::{count, duration, plural, span};

/// A measurement of clocks.
pub fn clock_article(record: &ClockRecord) -> Article {
    let measured = plural(record.cpus.len(), "CPU");
    let set_up = format!(
        "{measured} busy at once for {}, with additions that each need the one before: one a cycle, whole numbers only. A \
         figure for each {}.",
        span(record.duration_ns),
        duration(record.interval_ns)
    );
    Article::new(ClockMeasurement::KIND, "Clocks under load", headline(record))
        .detail(set_up)
        .table("Clock of each CPU in MHz", table(record))
        .sentences("What it means", meaning(record))
        .sentences("Not measured", record.left_out.clone())
}

fn headline(record: &ClockRecord) -> String {
    match (record.mhz_kept(), record.is_steady()) {
        (None, _) => "Nothing was measured.".to_owned(),
        (Some(mhz), None) => {
            format!(
                "The slowest figure is {}; the figures are too few to show whether clocks move.",
                in_mhz(mhz)
            )
        }
        (Some(mhz), Some(true)) => {
            format!("Every CPU kept {}, and no clock moved by more than 1 %.", in_mhz(mhz))
        }
        (Some(mhz), Some(false)) => format!("Every CPU kept {}; at times some ran faster.", in_mhz(mhz)),
    }
}

fn in_mhz(mhz: f64) -> String {
    format!("{} MHz", whole(mhz))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a clock in MHz, not below zero")]
fn whole(mhz: f64) -> String {
    count(mhz.max(0.0).round() as u64)
}

fn table(record: &ClockRecord) -> Table<'_, CpuClock> {
    let of = |cell: fn(ClockRange) -> String| move |cpu: &CpuClock| cpu.range().map(cell);
    Table::of(&record.cpus)
        .figures("CPU", 0, |cpu| cpu.cpu.to_string())
        .figures("lowest", 0, of(|range| whole(range.mhz_min)))
        .figures("median", 0, of(|range| whole(range.mhz)))
        .figures("highest", 0, of(|range| whole(range.mhz_max)))
        .figures("spread", 0, of(|range| format!("{:.1} %", range.spread_percent())))
        .figures("driver's maximum", 1, |cpu| cpu.hardware_mhz_max.map(whole))
        .figures("figures", 2, |cpu| cpu.mhz.len().to_string())
}

fn meaning(record: &ClockRecord) -> Vec<String> {
    let Some(limit) = record.limit_mhz() else { return Vec::new() };
    let mut sentences = Vec::new();
    match record.is_steady() {
        None => sentences.push("Measure for a second or longer.".to_owned()),
        Some(true) => sentences.push("A limit of the boost clock would change nothing here.".to_owned()),
        Some(false) => sentences.push(format!(
            "A limit of the boost clock at {} (AMD Fmax Boost Limit, or scaling_max_freq) is one that every CPU kept. \
             Measure again with it, and with your own load: vector instructions lower clocks further.",
            in_mhz(limit)
        )),
    }
    let too_fast: CpuSet = record.too_fast().into_iter().collect();
    if !too_fast.is_empty() {
        sentences.push(format!(
            "{too_fast:#} seems faster than its driver's maximum: the driver leaves boost out, or an addition does not \
             take one cycle there."
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::clock::CpuClock;

    fn record(second: &[f64]) -> ClockRecord {
        let cpu = |cpu, mhz: &[f64]| CpuClock { cpu, hardware_mhz_max: Some(3_900.0), mhz: mhz.to_vec() };
        ClockRecord {
            duration_ns: 10_000_000_000,
            interval_ns: 100_000_000,
            cpus: vec![cpu(1, &[3_890.0, 3_895.0, 3_898.0]), cpu(2, second)],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn a_clock_that_moves_gets_a_limit() {
        let text = clock_article(&record(&[3_812.0, 3_897.0, 3_899.0])).to_text(80);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string());
    }

    #[test]
    fn a_steady_clock_needs_none() {
        let few = clock_article(&record(&[3_885.0, 3_886.0])).to_text(80);
        assert!(few.contains("too few to show") && !few.contains("would change nothing"), "{few}");
        let mut record = record(&[3_885.0; 10]);
        record.cpus[0].mhz = vec![3_895.0; 10];
        let text = clock_article(&record).to_text(80);
        assert!(text.contains("no clock moved") && text.contains("would change nothing"), "{text}");
        assert!(clock_article(&ClockRecord::default()).to_text(80).contains("Nothing was measured."));
    }
}
