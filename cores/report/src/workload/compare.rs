//! A comparison of two settings as text.

use crate::workload::words::{judged, named, per_second, ratio};
use lowlat_host::statistics::MedianInterval;
use lowlat_text::columns::{Column, Table};
use lowlat_text::units::clean;
use lowlat_workload::{Verdict, WorkloadRecord, verdict};

/// One workload under both settings.
pub struct Pair {
    /// Index of the cell of A.
    pub a: usize,
    /// Index of the cell of B.
    pub b: usize,
    /// Rate of B divided by that of A.
    pub ratio: MedianInterval,
}

/// Pairs of cells that both have counts.
pub fn pairs(record: &WorkloadRecord) -> Vec<Pair> {
    let of = |[a, b]: [usize; 2]| Some(Pair { a, b, ratio: record.ratio(b, a)? });
    record.pairs().into_iter().filter_map(of).collect()
}

/// Describes each side: "A: place=spread".
pub fn sides(record: &WorkloadRecord) -> Vec<String> {
    let settings = record.cells.iter().take(2).map(|cell| cell.setting);
    ["A", "B"].iter().zip(settings).map(|(name, setting)| format!("{name}: {setting}")).collect()
}

/// "B is faster: pipe, 1 copy 10.4 [9.9, 10.8]".
pub fn headline(record: &WorkloadRecord) -> String {
    let pairs = pairs(record);
    if pairs.is_empty() {
        return "Nothing was compared".to_owned();
    }
    let ratios = pairs.iter().filter_map(|pair| Some((name(record, pair)?, pair.ratio)));
    grouped(&ratios.collect::<Vec<_>>(), ["B is faster", "B is slower"])
}

/// Names with their ratios, by verdict: "B is faster: pipe, 1 copy 10.4 [9.9, 10.8]".
pub fn grouped(ratios: &[(String, MedianInterval)], [faster, slower]: [&str; 2]) -> String {
    let of = |wanted: Verdict| -> Vec<String> {
        let shown = ratios.iter().filter(|(_, of)| verdict(of) == wanted);
        shown.map(|(name, of)| format!("{name} {}", ratio(of))).collect()
    };
    let all = [
        (Verdict::Faster, faster),
        (Verdict::Slower, slower),
        (Verdict::NoDifferenceShown, "No difference shown"),
        (Verdict::TooFewRounds, "Too few rounds for a verdict"),
        (Verdict::NothingCounted, "No verdict, because a side counted nothing in many rounds"),
    ];
    let parts = all.iter().map(|(wanted, words)| (words, of(*wanted))).filter(|(_, list)| !list.is_empty());
    parts.map(|(words, list)| format!("{words}: {}", list.join(", "))).collect::<Vec<_>>().join(". ")
}

fn name(record: &WorkloadRecord, pair: &Pair) -> Option<String> {
    let cell = record.cells.get(pair.a)?;
    Some(clean(&named(&cell.workload, cell.copies)))
}

/// A row for each workload and number of copies.
pub fn table(record: &WorkloadRecord) -> Vec<Column> {
    let pairs = pairs(record);
    let cell = |pair: &Pair| record.cells.get(pair.a);
    let rate = |cell| record.rate(cell).map_or_else(String::new, |rate| per_second(rate.median));
    Table::of(&pairs)
        .words("workload", 0, |pair| cell(pair).map_or_else(String::new, |cell| clean(&cell.workload)))
        .figures("copies", 0, |pair| cell(pair).map_or_else(String::new, |cell| cell.copies.to_string()))
        .figures("A per second", 0, |pair| rate(pair.a))
        .figures("B per second", 0, |pair| rate(pair.b))
        .words("B / A", 0, |pair| judged(&pair.ratio))
        .into_columns()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_workload::{Cell, CellRun, Idle, Place, Purpose, Setting};

    fn text(record: &WorkloadRecord, width: usize) -> String {
        crate::workload_text(record, false, width)
    }

    fn record(rates: [f64; 2], rounds: u32) -> WorkloadRecord {
        let cell = |place| Cell {
            workload: "pipe".into(),
            unit: "round trips".into(),
            copies: 1,
            setting: Setting { place, idle: Idle::Allowed, ..Setting::default() },
            cpus: vec![0, 1],
        };
        let noise =
            |round: u32, cell: usize| 1.0 + 0.02 * f64::from((round + u32::try_from(cell).unwrap()) % 3);
        let runs = (0..rounds).flat_map(|round| {
            rates.iter().enumerate().map(move |(cell, rate)| CellRun {
                round,
                cell: u32::try_from(cell).unwrap(),
                per_s: rate * noise(round, cell),
                ..CellRun::default()
            })
        });
        WorkloadRecord {
            purpose: Purpose::Compare,
            cells: vec![cell(Place::Spread), cell(Place::One)],
            rounds,
            runs: runs.collect(),
            ..WorkloadRecord::default()
        }
    }

    #[test]
    fn a_winner_needs_rounds_that_agree() {
        let clear = text(&record([45_000.0, 450_000.0], 7), 80);
        assert!(clear.contains("B is faster: pipe, 1 copy 10."), "{clear}");
        assert!(clear.contains("A: place=spread") && clear.contains("B: place=one"), "{clear}");
        assert!(text(&record([450_000.0, 45_000.0], 7), 80).contains("B is slower"));
        let unclear = text(&record([45_000.0, 45_000.0], 9), 80);
        assert!(unclear.contains("No difference shown"), "{unclear}");
        assert!(text(&record([1.0, 2.0], 3), 80).contains("Too few rounds"));
        assert!(
            text(&WorkloadRecord { purpose: Purpose::Compare, ..WorkloadRecord::default() }, 80)
                .contains("Nothing was compared")
        );
    }

    #[test]
    fn empty_sides_equal_cpus_and_two_humps_are_said() {
        let mut of = record([45_000.0, 45_000.0], 15);
        for run in of.runs.iter_mut().filter(|run| run.cell == 0 && run.round < 9) {
            run.per_s = 0.0;
        }
        let a_is_empty = text(&of, 80);
        let none = "No verdict, because a side counted nothing in many rounds: pipe, 1 copy ";
        assert!(a_is_empty.replace('\n', " ").contains(&format!("{none}∞ [")), "{a_is_empty}");
        for run in &mut of.runs {
            run.cell = 1 - run.cell;
        }
        let b_is_empty = text(&of, 80);
        assert!(b_is_empty.replace('\n', " ").contains(&format!("{none}0.00")), "{b_is_empty}");
        let said = |of: &WorkloadRecord| text(of, 80).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said(&of).contains("pipe, 1 copy with place=one counted nothing in 9 of 15 rounds"),
            "{}",
            said(&of)
        );
        assert!(said(&record([1.0, 1.0], 9)).contains(
            "use the same CPUs (0-1), each process on the same one, so a setting was compared with itself"
        ));
        let mut reordered = record([1.0, 1.0], 9);
        reordered.cells[1].cpus = vec![1, 0];
        assert!(said(&reordered).contains("use the same CPUs (0-1), in another order"));
        let mut other = record([1.0, 1.0], 9);
        other.cells[1].setting.policy = lowlat_workload::Policy::Fifo;
        assert!(
            !said(&other).contains("itself") && !said(&other).contains("other rules"),
            "the policies differ"
        );
        other.cells.iter_mut().for_each(|cell| cell.cpus.clear());
        assert!(said(&other).contains("wakes processes of each policy by other rules"), "{}", said(&other));
        let mut humps = record([100.0, 100.0], 9);
        for run in humps.runs.iter_mut().filter(|run| run.round % 3 == 0 && run.cell == 1) {
            run.per_s *= 0.8;
        }
        assert!(
            said(&humps).contains("place=one has two humps, near 81.6 and 102 per second"),
            "{}",
            said(&humps)
        );
    }
}
