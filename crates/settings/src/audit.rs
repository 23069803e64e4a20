//! The audit: every setting of the catalogue judged on one host, with a score.

use crate::{Context, Finding, Verdict, judge_one};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All findings on one host, worst first, with their score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// The profile used.
    pub profile: lowlat_host::Profile,
    /// The score.
    pub score: Score,
    /// Every setting, worst first ([`Finding::rank`]).
    pub findings: Vec<Finding>,
}

/// The score of a set of findings. Unknown and inapplicable rows never count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Score {
    /// Weight of the good rows as a percentage of all rows that count; `None` if no row counts.
    pub percent: Option<u8>,
    /// Rows by verdict.
    pub count_by_verdict: BTreeMap<Verdict, usize>,
}

impl Audit {
    /// Judges every setting.
    pub fn of(context: &Context<'_>) -> Self {
        let mut findings: Vec<Finding> =
            context.catalogue.settings().map(|setting| judge_one(context, setting)).collect();
        findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
        Self { profile: context.profile, score: Score::of(&findings), findings }
    }

    /// Returns the rows that need action, worst first.
    pub fn faults(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict.is_fault())
    }
}

impl Score {
    /// Computes the score of findings.
    pub fn of(findings: &[Finding]) -> Self {
        let mut score = Self::default();
        let (mut good, mut all) = (0u32, 0u32);
        for finding in findings {
            *score.count_by_verdict.entry(finding.verdict).or_default() += 1;
            if finding.verdict.counts() {
                all += u32::from(finding.weight());
                good += if finding.verdict == Verdict::Good { u32::from(finding.weight()) } else { 0 };
            }
        }
        // Rounded down: 100 means that nothing is wrong.
        score.percent = (all > 0).then(|| u8::try_from(good * 100 / all).expect("good is part of all"));
        score
    }

    /// Number of rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.count_by_verdict.get(&verdict).copied().unwrap_or(0)
    }
}
