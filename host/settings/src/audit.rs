//! The audit: every setting of the catalogue judged on one host, with a score.

use crate::{Checked, Context, Finding, Verdict, judge_one};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All findings on one host, worst first, with their score.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Audit {
    pub profile: lowlat_host::Profile,
    pub score: Score,
    /// Every setting, worst first ([`Finding::rank`]).
    pub findings: Vec<Finding>,
    /// Reasons why the findings may not hold, one or two sentences each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The score of a set of findings. An unknown row counts as not good, because an unread value must not raise the score.
/// Inapplicable rows never count.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Score {
    /// Weight of the good rows as a percentage of all rows that apply or may apply; `None` if none could be judged.
    pub percent: Option<u8>,
    /// Number of rows by verdict.
    pub count_by_verdict: BTreeMap<Verdict, usize>,
}

impl Audit {
    /// Judges every setting on one host.
    pub fn of(context: &Context<'_>) -> Self {
        let mut findings: Vec<Finding> =
            context.catalogue.settings().map(|setting| judge_one(context, setting)).collect();
        findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
        let warnings = context.host.kernel.unsupported().into_iter().collect();
        Self { profile: context.profile, score: Score::of(&findings), findings, warnings }
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
        let (mut good, mut all, mut is_judged) = (0u32, 0u32, false);
        for finding in findings {
            *score.count_by_verdict.entry(finding.verdict).or_default() += 1;
            is_judged |= finding.verdict.counts();
            if finding.verdict.counts() || finding.verdict == Verdict::Unknown {
                all += u32::from(finding.weight());
                good += if finding.verdict == Verdict::Good { u32::from(finding.weight()) } else { 0 };
            }
        }
        // Rounded down: 100 means that everything was checked and nothing is wrong.
        score.percent = is_judged.then(|| u8::try_from(good * 100 / all).expect("good is part of all"));
        score
    }

    /// Counts the applicable rows that were checked.
    pub fn checked(&self) -> Checked {
        let counting = Verdict::WORST_FIRST.into_iter().filter(|verdict| verdict.counts());
        Checked {
            checked: counting.map(|verdict| self.count(verdict)).sum(),
            unknown: self.count(Verdict::Unknown),
        }
    }

    /// Number of rows with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.count_by_verdict.get(&verdict).copied().unwrap_or(0)
    }
}
