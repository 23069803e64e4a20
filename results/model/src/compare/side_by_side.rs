//! Several documents side by side: each one's figures, and each later one compared with the first.

use super::{Comparison, ComparisonError, Limit, LimitOutcome, compare_documents, compare_settings};
use crate::ResultDocument;
use lowlat_host::statistics::RateInterval;
use lowlat_jitter::{JitterStudy, Percentile, study};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SideBySide {
    /// The documents, in the given order.
    pub documents: Vec<DocumentFigures>,
    /// The second and each later document compared with the first; or, of pairs, one comparison of all that come second
    /// with all that come first.
    pub comparisons: Vec<Comparison>,
    /// Outcome of the limit for each of them; empty if no limit was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitOutcome>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DocumentFigures {
    /// Its name, usually that of its file.
    pub name: String,
    /// The host: product and processor; empty if unknown.
    pub host: String,
    /// The kernel's release; empty if unknown.
    pub kernel: String,
    pub started_at: String,
    /// The command that wrote it.
    pub command: String,
    /// The score of its settings, 0 to 100.
    pub score_percent: Option<u8>,
    /// Number of settings at fault.
    pub fault_count: usize,
    /// Its interruptions; `None` if jitter was not measured.
    pub jitter: Option<JitterFigures>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterFigures {
    /// Interruptions of at least this length count.
    pub threshold_ns: u64,
    pub cpu_count: usize,
    /// Sampled time over all of them.
    pub core_seconds: f64,
    /// Interruptions per second and CPU.
    pub rate: Option<RateInterval>,
    /// Share of the time that they took, 0 to 1.
    pub lost_share: Option<f64>,
    pub length_ns_max: Option<u64>,
    pub time_percentiles: Vec<Percentile>,
}

impl SideBySide {
    /// Compares documents, each with its name, and checks each comparison against a limit. Documents in pairs are
    /// pooled. A document without a jitter measurement is compared by its settings and workloads only; pooled documents
    /// need one, or all workloads.
    ///
    /// # Errors
    /// [`ComparisonError`] if a record is damaged, or if `documents` is empty.
    pub fn of(
        documents: &[(String, &ResultDocument)],
        are_pairs: bool,
        limit: Option<&Limit>,
    ) -> Result<Self, ComparisonError> {
        let all: Vec<&ResultDocument> = documents.iter().map(|(_, document)| *document).collect();
        let Some((first, rest)) = all.split_first() else {
            return Err(ComparisonError::NoRun(super::SideName::Before));
        };
        let side = |first: usize| all.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
        let sides = if are_pairs {
            vec![[side(0), side(1)]]
        } else {
            rest.iter().map(|other| [vec![*first], vec![*other]]).collect()
        };
        let mut of = Self::default();
        for [before, after] in &sides {
            let is_single = before.len() == 1 && after.len() == 1;
            let mut both = before.iter().chain(after);
            // Documents in pairs that all have workloads need no jitter.
            let has_other = is_single && both.clone().any(|of| of.jitter().is_none())
                || both.all(|of| of.jitter().is_none() && of.workload().is_some());
            let comparison =
                if has_other { compare_settings(before, after) } else { compare_documents(before, after)? };
            let [records_before, records_after] = [before, after]
                .map(|of| of.iter().filter_map(|of| Some(&of.jitter()?.record)).collect::<Vec<_>>());
            of.limits.extend(limit.map(|limit| comparison.limit(&records_before, &records_after, limit)));
            of.comparisons.push(comparison);
        }
        of.documents = documents.iter().map(|(name, document)| figures(name, document)).collect();
        Ok(of)
    }
}

fn figures(name: &str, document: &ResultDocument) -> DocumentFigures {
    let studied: Option<JitterStudy> = document.jitter().and_then(|jitter| study(&jitter.record).ok());
    DocumentFigures {
        name: name.to_owned(),
        host: super::documents::host_of(document),
        kernel: document.snapshot.kernel.release.text().to_owned(),
        started_at: document.started_at.clone(),
        command: document.command.clone(),
        score_percent: document.audit.score.percent,
        fault_count: document.audit.faults().count(),
        jitter: studied.map(|study| JitterFigures {
            threshold_ns: study.threshold_ns,
            cpu_count: study.all.cpus.len(),
            core_seconds: study.all.core_seconds,
            rate: study.all.rate,
            lost_share: study.all.lost_share,
            length_ns_max: study.all.length_ns_max,
            time_percentiles: study.all.time_percentiles,
        }),
    }
}
