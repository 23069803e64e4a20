//! The schedule of a proof: how many rounds of which length fit into a time.

use super::FALSE_DISCOVERY_RATE;
use lowlat_host::paired::pairs_needed;
use std::time::Duration;

/// Rounds beyond the fewest that can show a difference: pairs get lost, or disagree by chance.
const SPARE_ROUNDS: u32 = 3;
const SLICE_MIN: Duration = Duration::from_secs(1);
/// Longer measurements would show less than more rounds do.
const SLICE_MAX: Duration = Duration::from_secs(10);
/// Time for effects of switching to end.
const SETTLE: Duration = Duration::from_millis(200);
/// Time that a switch takes, of which a pair needs up to four.
const SWITCH: Duration = Duration::from_millis(20);

/// Rounds of measurements, each of which measures every group of settings on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofSchedule {
    /// Rounds that fit into the budget.
    pub rounds: u32,
    /// Pairs of measurements in these rounds.
    pub pairs: u32,
    /// Rounds that are made even if they take longer than the budget, since fewer can show nothing.
    pub rounds_min: u32,
    /// Length of each measurement.
    pub slice: Duration,
    /// Pause after each switch.
    pub settle: Duration,
    /// Expected time of all rounds.
    pub total: Duration,
    pub budget: Duration,
}

impl ProofSchedule {
    /// The schedule that fills a budget. `fixed` is the length of a measurement that cannot be chosen.
    ///
    /// # Errors
    /// The least budget that suffices.
    pub fn within(
        budget: Duration,
        groups: usize,
        figures: usize,
        fixed: Option<Duration>,
    ) -> Result<Self, Duration> {
        let fewest = pairs_needed(groups * figures, FALSE_DISCOVERY_RATE);
        let fewest = u32::try_from(fewest).unwrap_or(u32::MAX).saturating_add(SPARE_ROUNDS);
        let pairs = u32::try_from(groups).unwrap_or(u32::MAX).max(1);
        let overhead = 2 * (SETTLE + 2 * SWITCH);
        let round = |slice: Duration| pairs * (2 * slice + overhead);
        let fitting = (budget / fewest / pairs).saturating_sub(overhead) / 2;
        let slice = fixed.unwrap_or_else(|| fitting.min(SLICE_MAX));
        if fixed.is_none() && slice < SLICE_MIN || round(slice) * fewest > budget {
            return Err(round(fixed.unwrap_or(SLICE_MIN)) * fewest);
        }
        let rounds = budget.as_millis() / round(slice).as_millis().max(1);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX).max(fewest);
        let total = round(slice) * rounds;
        let pairs = rounds.saturating_mul(pairs);
        Ok(Self { rounds, pairs, rounds_min: fewest, slice, settle: SETTLE, total, budget })
    }

    /// True if no further round is made after so many, which took this time.
    pub fn is_over(&self, rounds: u32, took: Duration) -> bool {
        rounds >= self.rounds_min && took + took / rounds.max(1) > self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_fits_its_budget_and_can_show_something() {
        for (minutes, groups, figures) in [(30, 25, 2), (30, 1, 1), (120, 60, 2), (9, 10, 2)] {
            let budget = Duration::from_secs(60 * minutes);
            let of = ProofSchedule::within(budget, groups, figures, None).unwrap();
            assert!(of.total <= budget, "{of:?}");
            assert!(of.rounds as usize >= pairs_needed(groups * figures, FALSE_DISCOVERY_RATE), "{of:?}");
            assert!((SLICE_MIN..=SLICE_MAX).contains(&of.slice), "{of:?}");
            assert!(of.total * 10 >= budget * 9 || of.slice == SLICE_MAX, "{of:?}");
        }
    }

    #[test]
    fn too_little_time_names_what_is_enough() {
        let enough = ProofSchedule::within(Duration::from_secs(60), 25, 2, None).unwrap_err();
        assert!(ProofSchedule::within(enough, 25, 2, None).is_ok(), "{enough:?}");
        assert_eq!(
            ProofSchedule::within(enough.saturating_sub(Duration::from_secs(1)), 25, 2, None),
            Err(enough)
        );
        let long = Some(Duration::from_secs(60));
        let enough = ProofSchedule::within(Duration::from_secs(600), 3, 1, long).unwrap_err();
        assert_eq!(ProofSchedule::within(enough, 3, 1, long).unwrap().slice, Duration::from_secs(60));
    }
}
