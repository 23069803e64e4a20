use super::*;
use crate::{
    compare::CompareSide,
    pingpong::{ControlRow, Figures},
    tools::Tool,
};

fn row(size: u32, p50: f64) -> ToolRow {
    ToolRow {
        size_bytes: Some(size),
        count: Some(10_000),
        mean_ns: Some(p50 * 1.1),
        p50_ns: Some(p50),
        p99_ns: Some(p50 * 2.0),
        mean_step_ns: 1.0,
        quantile_step_ns: 1.0,
        ..ToolRow::default()
    }
}

fn control(median_ns: u64) -> ControlRow {
    ControlRow {
        server_cpu: 1,
        figures: Figures { median_ns, ..Figures::default() },
        ..ControlRow::default()
    }
}

fn run(round: u32, side: u32, rows: Vec<ToolRow>) -> CompareRun {
    CompareRun { round, side, rows, controls: vec![control(70)] }
}

/// Rounds of two sides, with the medians of both in each.
fn record(rounds: &[(f64, f64)]) -> CompareRecord {
    let side = |name: &str| CompareSide { name: name.into(), tool: Tool::Lowlat, command: String::new() };
    let runs = (0..)
        .zip(rounds)
        .flat_map(|(round, (a, b))| [run(round, 0, vec![row(32, *a)]), run(round, 1, vec![row(32, *b)])]);
    CompareRecord {
        sides: vec![side("A"), side("B")],
        rounds: 9,
        runs: runs.collect(),
        ..CompareRecord::default()
    }
}

fn noisy(factor: f64) -> Vec<(f64, f64)> {
    // Both drift together by 40 %, as on a virtual machine; the pairs differ by the factor and a little noise.
    (0..9_u32)
        .map(|n| 5_000.0 * (1.0 + 0.05 * f64::from(n)))
        .zip([1.0, 0.98, 1.02, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0])
        .map(|(a, noise)| (a, a * factor * noise))
        .collect()
}

fn verdicts(record: &CompareRecord) -> Vec<Verdict> {
    CompareStudy::of(record).sizes[0].comparisons[0].figures.iter().map(|of| of.verdict).collect()
}

#[test]
fn the_ratio_of_rounds_names_the_faster_side_in_spite_of_drift() {
    let study = CompareStudy::of(&record(&noisy(0.8)));
    assert_eq!((study.obstacles.len(), study.control_ratio), (0, Some(1.0)));
    let p50 = study.sizes[0].comparisons[0].figures[0];
    assert_eq!((p50.figure, p50.verdict), (Figure::P50, Verdict::Faster));
    assert!(
        (p50.ratio.median - 0.8).abs() < 0.01 && p50.ratio.low > 0.75 && p50.ratio.high < 0.85,
        "{p50:?}"
    );
    assert_eq!(verdicts(&record(&noisy(1.3))), [Verdict::Slower; 3]);
    assert_eq!(verdicts(&record(&noisy(1.0))), [Verdict::NoDifferenceShown; 3]);
}

#[test]
fn a_control_that_moved_names_no_winner() {
    let mut record = record(&noisy(0.8));
    record.runs[7].controls = vec![control(250)];
    let study = CompareStudy::of(&record);
    assert!(matches!(study.obstacles[..], [Obstacle::ControlMoved { ratio }] if ratio > 3.0), "{study:?}");
    assert_eq!(verdicts(&record), [Verdict::NotJudged; 3]);
}

#[test]
fn few_rounds_and_imported_outputs_are_not_judged() {
    let few = record(&noisy(0.8)[..5]);
    assert_eq!(CompareStudy::of(&few).obstacles, [Obstacle::TooFewRounds { rounds: 5 }]);
    assert_eq!(verdicts(&few), [Verdict::NotJudged; 3]);
    let imported = CompareRecord { is_imported: true, ..record(&noisy(0.8)[..1]) };
    assert_eq!(CompareStudy::of(&imported).obstacles, [Obstacle::NotInTurn]);
    let mut broken = record(&noisy(0.8)[..6]);
    broken.runs.pop();
    assert_eq!(CompareStudy::of(&broken).obstacles, [Obstacle::TooFewRounds { rounds: 5 }], "a run failed");
}

#[test]
fn differences_below_a_program_s_steps_are_not_claimed() {
    let mut record = record(&noisy(0.97).iter().map(|(a, _)| (*a, a * 0.97)).collect::<Vec<_>>());
    assert_eq!(verdicts(&record)[0], Verdict::Faster);
    for run in &mut record.runs {
        run.rows[0].quantile_step_ns = 500.0;
    }
    let step = Verdict::BelowSteps { step_ns: 500.0 };
    assert_eq!(verdicts(&record), [step, Verdict::Faster, step], "the mean is finer");
}

#[test]
fn only_common_sizes_and_figures_are_compared() {
    let mut some = record(&noisy(0.8));
    for run in &mut some.runs {
        let only_here = row(if run.side == 0 { 64 } else { 128 }, 6_000.0);
        run.rows.insert(0, only_here);
        if run.side == 1 {
            run.rows[1].p99_ns = None;
        }
    }
    let study = CompareStudy::of(&some);
    assert_eq!(study.sizes.iter().map(|size| size.size_bytes).collect::<Vec<_>>(), [Some(32)]);
    let figures: Vec<Figure> = study.sizes[0].comparisons[0].figures.iter().map(|of| of.figure).collect();
    assert_eq!(figures, [Figure::P50, Figure::Mean]);
    // A program that does not print its size has one; two different ones are not comparable.
    let mut unknown = record(&noisy(0.8));
    unknown.runs.iter_mut().filter(|run| run.side == 1).for_each(|run| run.rows[0].size_bytes = None);
    assert_eq!(CompareStudy::of(&unknown).sizes[0].sides[1].rounds, 9);
    unknown.runs.iter_mut().filter(|run| run.side == 1).for_each(|run| run.rows[0].size_bytes = Some(14));
    let study = CompareStudy::of(&unknown);
    assert_eq!(study.obstacles, [Obstacle::NoCommonSize]);
    let rounds: Vec<[u32; 2]> =
        study.sizes.iter().map(|size| [0, 1].map(|side| size.sides[side].rounds)).collect();
    assert_eq!(
        (rounds, study.sizes[0].comparisons[0].figures.len()),
        (vec![[9, 0], [0, 9]], 0),
        "each is shown"
    );
}

/// Two equal sides with noise of any size: a winner is named in at most 5 % of comparisons, besides chance.
#[test]
fn equal_sides_rarely_have_a_winner() {
    let mut state = 7_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        5_000.0 * (1.0 + (state >> 40) as f64 / f64::from(1_u32 << 24))
    };
    for rounds in [6, 9, 15] {
        let named = (0..1_000)
            .filter(|_| {
                let pairs: Vec<(f64, f64)> = (0..rounds).map(|_| (noise(), noise())).collect();
                matches!(verdicts(&record(&pairs))[0], Verdict::Faster | Verdict::Slower)
            })
            .count();
        assert!(named <= 65, "{named} of 1,000 with {rounds} rounds");
    }
}

#[test]
fn the_order_turns_in_every_round() {
    assert_eq!(
        [0, 1, 2].map(|round| CompareRecord::order(3, round)),
        [vec![0, 1, 2], vec![2, 1, 0], vec![0, 1, 2]]
    );
    assert_eq!((CompareSide::name_of(1), CompareSide::name_of(26)), ("B".into(), "side 27".into()));
}

#[test]
fn a_hostile_record_ends() {
    let record = CompareRecord { runs: vec![run(u32::MAX, 0, Vec::new())], ..record(&[]) };
    assert_eq!(CompareStudy::of(&record).sizes, []);
    assert_eq!(CompareStudy::of(&CompareRecord::default()).sizes, []);
}
