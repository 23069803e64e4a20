//! A comparison as text.

pub mod page;

use lowlat_host::statistics::MedianInterval;
use lowlat_net::{
    capital,
    compare::{CompareRecord, CompareStudy, Comparison, Difference, Obstacle, SizeComparison, Verdict},
    pingpong::{CONTROL_RATIO_MAX, ControlRow},
    tools::{Losses, Tool},
};
use lowlat_text::columns::{self, Column, PAGES_ONLY, Table};
use lowlat_text::text::{YELLOW, add_detail, add_result, add_sentences, add_wrapped, usable};
use lowlat_text::units::{clean, count, duration_fine, plural};

/// Intervals of which about one excludes 1 by chance.
const INTERVALS_PER_CHANCE: usize = 20;

/// Formats a comparison: the verdict, the sides, the table by size, the doubts.
pub fn net_compare_text(record: &CompareRecord, width: usize) -> String {
    let width = usable(width);
    let study = CompareStudy::of(record);
    let mut out = String::new();
    add_result(&mut out, &headline(record, &study), width);
    for sentence in named_sides(record).into_iter().chain([how(record)]) {
        add_detail(&mut out, &sentence, width);
    }
    if !study.sizes.is_empty() {
        out.push_str(&columns::table(table(record, &study), width));
    }
    for sentence in verdicts(record, &study) {
        add_wrapped(&mut out, &clean(&sentence), 2, width);
    }
    add_sentences(&mut out, (YELLOW, "Caveats"), &doubts(record, &study), width);
    out
}

/// The result in one sentence, for the size that people quote.
pub(super) fn headline(record: &CompareRecord, study: &CompareStudy) -> String {
    if let Some(obstacle) = study.obstacles.first() {
        return format!("No winner is named: {}", why(*obstacle));
    }
    let Some(size) = quoted(study) else { return "Nothing was compared".to_owned() };
    let each = size.comparisons.iter().map(|one| result(record, one));
    format!("{}{}", each.collect::<Vec<_>>().join("; "), of_size(size.size_bytes))
}

/// The size that people quote, or else the first.
fn quoted(study: &CompareStudy) -> Option<&SizeComparison> {
    study.sizes.iter().find(|size| size.size_bytes == Some(32)).or(study.sizes.first())
}

fn of_size(size_bytes: Option<u32>) -> String {
    size_bytes.map_or_else(String::new, |bytes| format!(" ({})", super::pingpong::bytes(bytes)))
}

/// "B is faster: p50 0.12 [0.11, 0.13], p99 0.31 [0.27, 0.40]".
pub(super) fn result(record: &CompareRecord, of: &Comparison) -> String {
    let name = name(record, of.side);
    let with = |wanted: fn(&Verdict) -> bool| {
        let figures = of.figures.iter().filter(|figure| wanted(&figure.verdict));
        figures.map(ratio).collect::<Vec<_>>().join(", ")
    };
    let faster = with(|verdict| *verdict == Verdict::Faster);
    let slower = with(|verdict| *verdict == Verdict::Slower);
    match (faster.is_empty(), slower.is_empty()) {
        (false, true) => format!("{name} is faster: {faster}"),
        (true, false) => format!("{name} is slower: {slower}"),
        (false, false) => format!("{name} is faster: {faster}; and slower: {slower}"),
        (true, true) => format!("{name}: no difference shown: {}", with(|_| true)),
    }
}

fn ratio(of: &Difference) -> String {
    format!("{} {}", of.figure.word(), interval(&of.ratio))
}

/// "60.0 ns to 68.0 ns"; `None` without a control.
pub(super) fn control_range<'a>(controls: impl Iterator<Item = &'a ControlRow>) -> Option<String> {
    let mut medians: Vec<u64> = controls.map(|row| row.figures.median_ns).collect();
    medians.sort_unstable();
    let (low, high) = (medians.first()?, medians.last()?);
    Some(format!("{} to {}", duration_fine(*low as f64), duration_fine(*high as f64)))
}

/// "0.12 [0.11, 0.13]", or the ratio alone if there are too few rounds for an interval.
fn interval(of: &MedianInterval) -> String {
    // Two digits that count, also of a ratio such as 0.00042.
    let digits = [0.1, 0.01, 0.001, 0.000_1].into_iter().take_while(|bound| of.median < *bound).count() + 2;
    let number = |value: f64| format!("{value:.digits$}");
    if !of.is_interval() {
        return number(of.median);
    }
    format!("{} [{}, {}]", number(of.median), number(of.low), number(of.high))
}

fn name(record: &CompareRecord, side: usize) -> String {
    record.sides.get(side).map(|side| side.name.clone()).unwrap_or_default()
}

/// "A: lowlat, udp 10.0.0.2 --wait block".
pub(super) fn named_sides(record: &CompareRecord) -> Vec<String> {
    let shown = |side: &lowlat_net::compare::CompareSide| match side.tool {
        Tool::Lowlat if !record.is_imported => {
            format!("{}: lowlat net pingpong client {}", side.name, side.command)
        }
        tool if record.is_imported => format!("{}: {tool}, from {}", side.name, side.command),
        _ => format!("{}: {}", side.name, side.command),
    };
    let all = record.sides.iter().enumerate();
    all.flat_map(|(place, side)| [Some(shown(side)), losses(record, place, &side.name)]).flatten().collect()
}

/// "A: 3 dropped, 0 duplicated, 1 out of order", over all rounds of a side whose program counts them.
fn losses(record: &CompareRecord, place: usize, name: &str) -> Option<String> {
    let runs = record.runs.iter().filter(|run| usize::try_from(run.side) == Ok(place));
    let counted: Vec<Losses> = runs.flat_map(|run| &run.rows).filter_map(|row| row.losses).collect();
    let sum = |of: fn(&Losses) -> u64| counted.iter().map(of).fold(0, u64::saturating_add);
    let [dropped, duplicated, late] =
        [sum(|of| of.dropped), sum(|of| of.duplicated), sum(|of| of.out_of_order)];
    let sentence = format!("{name}: {dropped} dropped, {duplicated} duplicated, {late} out of order");
    (!counted.is_empty()).then_some(sentence)
}

/// Describes the order of the runs, and the control.
pub(super) fn how(record: &CompareRecord) -> String {
    if record.is_imported {
        return "Finished outputs, not measured in turn. Half round trips; whole ones are halved.".to_owned();
    }
    let names: Vec<String> = record.sides.iter().map(|side| side.name.clone()).collect();
    let back: Vec<String> = names.iter().rev().cloned().collect();
    let rounds = plural(record.rounds, "round");
    let control = control_range(record.controls())
        .map(|range| format!(" Control: a cache line takes {range} between the CPUs."))
        .unwrap_or_default();
    format!(
        "{rounds} in the order {}, {}, and so on; half round trips, medians over rounds.{control}",
        names.join(" "),
        back.join(" ")
    )
}

fn table(record: &CompareRecord, study: &CompareStudy) -> Vec<Column> {
    let shown = |size: &SizeComparison| -> Vec<usize> {
        let measured = size.sides.iter().enumerate().filter(|(_, side)| side.rounds > 0);
        measured.map(|(place, _)| place).collect()
    };
    let rows: Vec<(&SizeComparison, usize)> =
        study.sizes.iter().flat_map(|size| shown(size).into_iter().map(move |side| (size, side))).collect();
    let figure = |of: fn(&lowlat_net::compare::SideFigures) -> Option<f64>| {
        move |(size, side): &(&SizeComparison, usize)| of(size.sides.get(*side)?).map(duration_fine)
    };
    let ratio_of =
        |word: &'static str| move |(size, side): &(&SizeComparison, usize)| page::ratio(size, *side, word);
    Table::of(&rows)
        .figures("bytes", 0, |(size, side)| match size.size_bytes {
            Some(bytes) if shown(size).first() == Some(side) => count(u64::from(bytes)),
            _ => String::new(),
        })
        .words("side", 0, |(_, side)| name(record, *side))
        .figures("p50", 0, figure(|of| of.p50_ns))
        .strong()
        .figures("mean", 1, figure(|of| of.mean_ns))
        .figures("p99", 0, figure(|of| of.p99_ns))
        .figures(&format!("p50 / {}", name(record, 0)), 0, ratio_of("p50"))
        .figures(&format!("mean / {}", name(record, 0)), PAGES_ONLY, ratio_of("mean"))
        .figures(&format!("p99 / {}", name(record, 0)), 2, ratio_of("p99"))
        .figures("rounds", 3, |(size, side)| size.sides.get(*side).map(|of| of.rounds.to_string()))
        .into_columns()
}

/// A sentence for each size and side, where a winner may be named and the headline does not say it.
pub(super) fn verdicts(record: &CompareRecord, study: &CompareStudy) -> Vec<String> {
    if !study.obstacles.is_empty() || study.sizes.len() < 2 {
        return Vec::new();
    }
    let of = |size: &SizeComparison| {
        let each: Vec<String> = size.comparisons.iter().map(|one| result(record, one)).collect();
        format!("{}: {}.", size.size_bytes.map_or_else(String::new, super::pingpong::bytes), each.join("; "))
    };
    study.sizes.iter().map(of).collect()
}

fn why(obstacle: Obstacle) -> String {
    match obstacle {
        Obstacle::ControlMoved { ratio } => format!(
            "the control between the CPUs moved by a factor of {ratio:.1} (at most {CONTROL_RATIO_MAX}), so the rounds are \
             not comparable"
        ),
        Obstacle::NotInTurn => "finished outputs were not measured in turn".to_owned(),
        Obstacle::TooFewRounds { rounds } => format!(
            "{} complete, and an interval needs {}",
            plural(rounds, "round"),
            MedianInterval::ROUNDS_MIN
        ),
        Obstacle::NoCommonSize => "the sides measured no size in common".to_owned(),
    }
}

/// Everything that makes the result doubtful, one sentence each.
pub(super) fn doubts(record: &CompareRecord, study: &CompareStudy) -> Vec<String> {
    let mut doubts: Vec<String> =
        study.obstacles.iter().skip(1).map(|of| format!("{}.", capital(&why(*of)))).collect();
    let all = || study.sizes.iter().flat_map(|size| &size.comparisons).flat_map(|one| &one.figures);
    let steps = all().filter_map(|figure| match figure.verdict {
        Verdict::BelowSteps { step_ns } => Some((figure.figure.word(), step_ns)),
        _ => None,
    });
    let mut said: Vec<&str> = Vec::new();
    for (word, step_ns) in steps {
        if !said.contains(&word) {
            said.push(word);
            doubts.push(format!(
                "A difference in {word} is below the steps in which a side prints it ({}), so it is not claimed.",
                duration_fine(step_ns)
            ));
        }
    }
    let intervals = all().count();
    if study.obstacles.is_empty() && intervals >= INTERVALS_PER_CHANCE {
        doubts.push(format!(
            "Each interval holds for 95 %: of these {intervals}, about {} exclude 1 by chance.",
            intervals / INTERVALS_PER_CHANCE
        ));
    }
    doubts.extend(record.warnings.iter().cloned());
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_net::{
        compare::{CompareRun, CompareSide},
        pingpong::Figures,
        tools::ToolRow,
    };

    fn record(factor: f64, sizes: &[u32]) -> CompareRecord {
        let of_tool = |name: &str, tool, command: &str| CompareSide {
            name: name.into(),
            tool,
            command: command.into(),
        };
        let row = |size: u32, ns: f64| ToolRow {
            size_bytes: Some(size),
            count: Some(10_000),
            mean_ns: Some(ns * 1.05),
            p50_ns: Some(ns),
            p99_ns: Some(ns * 1.4),
            mean_step_ns: 1.0,
            quantile_step_ns: 1.0,
            ..ToolRow::default()
        };
        let mut runs = Vec::new();
        for round in 0..9_u32 {
            for (side, ns) in [(0, 24_000.0), (1, 24_000.0 * factor)] {
                let noise = 1.0 + f64::from((round * 7 + side * 4) % 9) / 1_000.0;
                let rows = sizes.iter().map(|size| row(*size, ns * noise)).collect();
                let figures = Figures { median_ns: 60 + u64::from(round), ..Figures::default() };
                runs.push(CompareRun {
                    round,
                    side,
                    rows,
                    controls: vec![ControlRow { figures, ..ControlRow::default() }],
                });
            }
        }
        CompareRecord {
            sides: vec![
                of_tool("A", Tool::Lowlat, "udp 10.0.0.2 --sizes 32"),
                of_tool("B", Tool::Sockperf, "sockperf ping-pong -i 10.0.0.2\u{1b}[2J"),
            ],
            rounds: 9,
            runs,
            ..CompareRecord::default()
        }
    }

    fn shown(record: &CompareRecord) -> String {
        let text = anstream::adapter::strip_str(&net_compare_text(record, 80)).to_string();
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_winner_is_named_with_its_intervals() {
        let words = shown(&record(0.12, &[32]));
        for part in [
            "B is faster: p50 0.12 [0.12, 0.12], mean 0.12 [0.12, 0.12], p99 0.12 [0.12, 0.12] (32 bytes)",
            "A: lowlat net pingpong client udp 10.0.0.2 --sizes 32",
            "B: sockperf ping-pong -i 10.0.0.2\\u{1b}[2J",
            "9 rounds in the order A B, B A, and so on",
            "Control: a cache line takes 60.0 ns to 68.0 ns between the CPUs.",
            "bytes side p50 mean p99 p50 / A",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(!words.contains("Caveats"), "{words}");
        assert!(
            shown(&record(1.0, &[32])).starts_with("B: no difference shown: p50 1.00 [1.00, 1.00], mean")
        );
        assert!(shown(&record(1.3, &[32])).starts_with("B is slower: p50 1."));
    }

    #[test]
    fn losses_are_shown_if_a_program_counts_them() {
        let mut counted = record(1.0, &[32]);
        assert!(!shown(&counted).contains("dropped"), "absent is not zero");
        let losses = |dropped| Some(Losses { dropped, duplicated: 0, out_of_order: 1 });
        let rows = counted.runs.iter_mut().filter(|run| run.side == 1).flat_map(|run| &mut run.rows);
        rows.zip(0..).for_each(|(row, round)| row.losses = losses(round));
        let words = shown(&counted);
        assert!(words.contains("B: 36 dropped, 0 duplicated, 9 out of order"), "{words}");
        assert!(!words.contains("A: 0 dropped"), "{words}");
    }

    #[test]
    fn a_control_that_moved_is_told_instead() {
        let mut moved = record(0.12, &[32]);
        moved.runs[4].controls[0].figures.median_ns = 250;
        let words = shown(&moved);
        assert!(
            words.starts_with("No winner is named: the control between the CPUs moved by a factor of 4.2"),
            "{words}"
        );
        assert!(!words.contains("faster"), "{words}");
    }

    #[test]
    fn many_sizes_have_a_sentence_each_and_a_word_on_chance() {
        let words = shown(&record(0.5, &[1, 2, 4, 8, 16, 32, 64]));
        assert!(words.contains("64 bytes: B is faster: p50 0.50 ["), "{words}");
        assert!(words.contains("of these 21, about 1 exclude 1 by chance"), "{words}");
    }

    #[test]
    fn imported_outputs_are_shown_without_a_verdict() {
        let mut imported = record(0.5, &[32]);
        imported.is_imported = true;
        imported.runs.truncate(2);
        let words = shown(&imported);
        for part in [
            "No winner is named: finished outputs were not measured in turn",
            "B: sockperf, from",
            "p50 / A",
            "0.50",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert!(shown(&CompareRecord::default()).contains("no size in common"));
    }
}
