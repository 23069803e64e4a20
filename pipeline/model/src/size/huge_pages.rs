//! Comparison of huge pages with usual ones.

use crate::{
    PipelineRecord,
    matrix::{Compared, StageRange, compare},
};
use serde::{Deserialize, Serialize};

/// Runs on huge pages and on usual ones, in turns, with the largest number of strategies that was checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HugePages {
    /// Number of strategies in every run.
    pub strategies: u32,
    pub usual: Vec<PipelineRecord>,
    pub huge: Vec<PipelineRecord>,
    /// Reason why there are no runs on huge pages, or no more of them.
    pub not_tried: Option<String>,
}

impl HugePages {
    /// Tick to order on huge pages, and on usual ones.
    pub fn ranges(&self) -> [StageRange; 2] {
        [&self.huge, &self.usual].map(|runs| StageRange::of(runs, |stages| &stages.t2o))
    }

    /// Compares huge pages with usual ones; `None` with fewer than two runs of either.
    pub fn compared(&self) -> Option<Compared> {
        let [huge, usual] = self.ranges();
        compare((&huge, self.huge.len()), (&usual, self.usual.len()))
    }

    /// Fewest bytes that a run on huge pages got from the pool.
    pub fn pooled_bytes(&self) -> u64 {
        let of_pool = |run: &PipelineRecord| {
            let kinds = run.backing_bytes.iter().filter(|(kind, _)| kind.ends_with("pages of the pool"));
            kinds.map(|(_, bytes)| *bytes).sum()
        };
        self.huge.iter().map(of_pool).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_difference_needs_two_runs_of_each() {
        let runs = |ns: [u64; 2]| ns.map(|ns| testing::run(100, ns)).to_vec();
        let mut tried =
            HugePages { usual: runs([40_000, 42_000]), huge: runs([20_000, 21_000]), ..HugePages::default() };
        assert!(matches!(tried.compared(), Some(Compared::Faster(factor)) if (1.9..2.1).contains(&factor)));
        assert_eq!(tried.pooled_bytes(), 0);
        tried.huge.pop();
        assert_eq!(tried.compared(), None);
        for run in &mut tried.huge {
            run.backing_bytes.insert("2048 KiB pages of the pool".to_owned(), 4 << 20);
        }
        assert_eq!(tried.pooled_bytes(), 4 << 20);
    }
}
