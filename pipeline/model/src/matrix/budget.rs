//! Shares a budget of time among rows.
//!
//! Every run of a row gets what it can use, up to a level that is the same for all: a row at 8,000 ticks a second has
//! enough after a second, one at 1 tick a second takes what is left. Rows of which a run would not see one tick are
//! left out, slowest first, and their time goes to the others.

/// The shortest run that is worth starting so many processes for, seconds.
pub const RUN_S_MIN: f64 = 1.0;
/// Ticks in a run beyond which more of them tell little: pooled over two runs they carry a p99.9.
const TICKS_WANTED: f64 = 5_000.0;
/// Runs of a row: fewer give no range of means.
const REPEATS_MIN: u32 = 2;
const REPEATS_DEFAULT: u32 = 3;
/// Starting and ending a run, and each process of it, seconds: an estimate, for the plan only.
const RUN_COST_S: f64 = 0.6;
const PROCESS_COST_S: f64 = 0.012;

/// Demand of a row on the budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Rate of ticks per second.
    pub rate_per_s: f64,
    pub processes: u32,
    /// Time that is spent between the starts of strategies, seconds.
    pub start_s: f64,
    /// Seconds and ticks of each run where they are given; `None`: what the budget allows.
    pub fixed: Option<(f64, u64)>,
    /// Reason why it is not run at all.
    pub refused: Option<String>,
}

/// A row's share of the budget.
#[derive(Debug, Clone, PartialEq)]
pub struct RowPlan {
    /// Seconds of each run; 0 when it is not run.
    pub duration_s: f64,
    /// Ticks of each run; 0 when it is not run.
    pub ticks: u64,
    /// Reason why it is not run.
    pub not_run: Option<String>,
}

impl RowPlan {
    fn not_run(why: String) -> Self {
        Self { duration_s: 0.0, ticks: 0, not_run: Some(why) }
    }
}

/// One run of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedRun {
    pub row: usize,
    /// Number of the run within its row, from 0.
    pub repeat: u32,
}

/// Plan of the runs within a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Number of runs of each row.
    pub repeats: u32,
    /// Share of each row, in the order given.
    pub rows: Vec<RowPlan>,
    /// The runs in their order: every row once, then every row again in the opposite order, and so on, so that a drift
    /// of the machine hits all rows alike.
    pub runs: Vec<PlannedRun>,
    /// Expected time of all runs, in seconds.
    pub expected_s: f64,
}

impl Budget {
    /// Shares `budget_s` seconds; `repeats` runs of each row, or else three, or two if three would leave out more rows.
    pub fn share(rows: &[Share], budget_s: f64, repeats: Option<u32>) -> Result<Self, String> {
        if let Some(repeats) = repeats {
            return plan(rows, budget_s, repeats.max(1));
        }
        let fewest = plan(rows, budget_s, REPEATS_MIN)?;
        let more = plan(rows, budget_s, REPEATS_DEFAULT).ok();
        Ok(more.filter(|more| more.run_count() == fewest.run_count()).unwrap_or(fewest))
    }

    /// Returns the number of rows that are run.
    pub fn run_count(&self) -> usize {
        self.rows.iter().filter(|row| row.not_run.is_none()).count()
    }
}

fn cost_s(row: &Share) -> f64 {
    RUN_COST_S + PROCESS_COST_S * f64::from(row.processes) + row.start_s
}

/// Shortest duration of a run, without that cost.
fn least_s(row: &Share) -> f64 {
    row.fixed.map_or(RUN_S_MIN, |(duration_s, _)| duration_s)
}

/// Longest duration of a run that a row can use.
fn wanted_s(row: &Share) -> f64 {
    (TICKS_WANTED / row.rate_per_s).max(RUN_S_MIN)
}

fn plan(rows: &[Share], budget_s: f64, repeats: u32) -> Result<Budget, String> {
    let each_s = budget_s / f64::from(repeats);
    let mut taking: Vec<usize> = (0..rows.len()).filter(|row| rows[*row].refused.is_none()).collect();
    taking.sort_by(|a, b| rows[*b].rate_per_s.total_cmp(&rows[*a].rate_per_s));
    let mut level_s = level(rows, &taking, each_s);
    let mut late: Vec<usize> = Vec::new();
    let is_late =
        |row: &Share, level_s: f64| row.fixed.is_none() && 1.0 / row.rate_per_s > level_s.max(RUN_S_MIN);
    while let Some(slowest) = taking.last().copied().filter(|row| is_late(&rows[*row], level_s)) {
        late.push(slowest);
        taking.pop();
        level_s = level(rows, &taking, each_s);
    }
    if level_s < RUN_S_MIN && !taking.is_empty() {
        let needed_s: f64 = taking.iter().map(|row| cost_s(&rows[*row]) + least_s(&rows[*row])).sum();
        let needed_s = (needed_s * f64::from(repeats)).ceil();
        return Err(format!(
            "a budget of {budget_s:.0} s is too short: {} rows take at least {needed_s:.0} s, two short runs each; give \
             --budget {needed_s:.0}s or more, or fewer rows with --rows",
            taking.len()
        ));
    }
    let mut plans: Vec<RowPlan> = rows.iter().map(|row| row_plan(row, level_s)).collect();
    for row in late {
        let (tick, run) = (seconds(1.0 / rows[row].rate_per_s), seconds(level_s));
        plans[row] = RowPlan::not_run(format!("one tick takes {tick}, and a run of this budget {run}"));
    }
    let runs: Vec<PlannedRun> = (0..repeats)
        .flat_map(|repeat| {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            if repeat % 2 == 1 {
                order.reverse();
            }
            order.into_iter().map(move |row| PlannedRun { row, repeat })
        })
        .filter(|run| plans[run.row].not_run.is_none())
        .collect();
    let expected_s = runs.iter().map(|run| plans[run.row].duration_s + cost_s(&rows[run.row])).sum();
    Ok(Budget { repeats, rows: plans, runs, expected_s })
}

/// The level up to which every run is filled so that one run of each row takes `each_s` in all.
fn level(rows: &[Share], taking: &[usize], each_s: f64) -> f64 {
    let given_s = |row: &Share| row.fixed.map_or(0.0, |(duration_s, _)| duration_s);
    let mut left_s =
        each_s - taking.iter().map(|row| cost_s(&rows[*row]) + given_s(&rows[*row])).sum::<f64>();
    // Fastest first, so those that want least come first.
    let sharing: Vec<usize> = taking.iter().copied().filter(|row| rows[*row].fixed.is_none()).collect();
    for (at, row) in sharing.iter().enumerate() {
        let even_s = left_s / (sharing.len() - at) as f64;
        let wanted_s = wanted_s(&rows[*row]);
        if even_s <= wanted_s {
            return even_s;
        }
        left_s -= wanted_s;
    }
    if left_s < 0.0 { 0.0 } else { f64::INFINITY }
}

fn row_plan(row: &Share, level_s: f64) -> RowPlan {
    if let Some(why) = &row.refused {
        return RowPlan::not_run(why.clone());
    }
    if let Some((duration_s, ticks)) = row.fixed {
        return RowPlan { duration_s, ticks, not_run: None };
    }
    let duration_s = wanted_s(row).min(level_s);
    // Whole ticks: a rest without a tick would measure nothing.
    let ticks = (duration_s * row.rate_per_s + 1e-6).floor().max(1.0);
    let duration_s = if row.rate_per_s < 1.0 / RUN_S_MIN { ticks / row.rate_per_s } else { duration_s };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of ticks, at least 1"
    )]
    let ticks = ticks as u64;
    RowPlan { duration_s, ticks, not_run: None }
}

/// Formats a time as "400 s" or "2.4 s".
fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{seconds:.0} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(rate_per_s: f64) -> Share {
        Share { rate_per_s, processes: 84, start_s: 0.0, fixed: None, refused: None }
    }

    #[test]
    fn slow_rows_take_what_fast_ones_leave_and_the_slowest_say_why_not() {
        let rows: Vec<Share> = [0.0025, 0.2, 1.0, 80.0, 8000.0].map(share).into();
        let budget = Budget::share(&rows, 100.0, None).unwrap();
        assert_eq!(budget.repeats, 3);
        let why = budget.rows[0].not_run.as_deref().unwrap();
        assert!(why.starts_with("one tick takes 400 s, and a run of this budget"), "{why}");
        assert_eq!(budget.rows[1].ticks, 1);
        assert!((budget.rows[1].duration_s - 5.0).abs() < 1e-9, "whole ticks: {:?}", budget.rows[1]);
        assert!((budget.rows[4].duration_s - RUN_S_MIN).abs() < 1e-9 && budget.rows[4].ticks == 8000);
        assert!(budget.rows[3].duration_s > budget.rows[4].duration_s);
    }

    #[test]
    fn runs_go_forth_and_back() {
        let rows = [share(10.0), Share { refused: Some("no huge pages".into()), ..share(1.0) }, share(5.0)];
        let budget = Budget::share(&rows, 60.0, Some(2)).unwrap();
        let order: Vec<(usize, u32)> = budget.runs.iter().map(|run| (run.row, run.repeat)).collect();
        assert_eq!(order, [(0, 0), (2, 0), (2, 1), (0, 1)]);
        assert_eq!(budget.rows[1].not_run.as_deref(), Some("no huge pages"));
    }

    /// The budget that an error names.
    fn needed_s(error: &str) -> f64 {
        let (_, behind) = error.split_once("give --budget ").unwrap();
        behind.split_once('s').unwrap().0.parse().unwrap()
    }

    #[test]
    fn a_budget_that_starts_nothing_says_what_it_takes() {
        let rows = vec![share(80.0); 20];
        let error = Budget::share(&rows, 20.0, None).unwrap_err();
        assert!(Budget::share(&rows, needed_s(&error), None).is_ok());
        assert!(Budget::share(&[], 1.0, None).is_ok_and(|budget| budget.runs.is_empty()));
    }

    #[test]
    fn given_durations_are_kept_or_the_budget_is_too_short() {
        let rows = [Share { fixed: Some((20.0, 7)), start_s: 80.0, ..share(0.01) }, share(800.0)];
        let budget = Budget::share(&rows, 240.0, None).unwrap();
        assert_eq!((budget.repeats, budget.rows[0].duration_s, budget.rows[0].ticks), (2, 20.0, 7));
        assert!(budget.rows[1].not_run.is_none() && budget.expected_s <= 240.0, "{budget:?}");
        let error = Budget::share(&rows, 100.0, None).unwrap_err();
        assert!(Budget::share(&rows, needed_s(&error), None).is_ok());
    }

    proptest! {
        #[test]
        fn it_keeps_the_budget_and_gives_every_run_a_tick(
            rates in proptest::collection::vec(-3.0_f64..4.0, 1..40), budget_s in 10.0_f64..4000.0,
        ) {
            let rows: Vec<Share> = rates.iter().map(|power| share(10_f64.powf(*power))).collect();
            if let Ok(budget) = Budget::share(&rows, budget_s, None) {
                prop_assert!(budget.expected_s <= budget_s * 1.001, "{} of {}", budget.expected_s, budget_s);
                for (row, plan) in rows.iter().zip(&budget.rows) {
                    prop_assert!(plan.not_run.is_some() || plan.duration_s * row.rate_per_s >= 0.999);
                    prop_assert!(plan.not_run.is_some() || plan.duration_s >= 0.999 * RUN_S_MIN);
                }
            }
        }
    }
}
