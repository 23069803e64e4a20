//! One jitter measurement, as a result document holds it.

use crate::{JitterRecord, JitterStudy, RemedyContext, StudyError, gate::GateOutcome, study_with};
use serde::{Deserialize, Serialize};

/// What was recorded, and what follows from it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JitterMeasurement {
    /// What was recorded.
    pub record: JitterRecord,
    /// The study of the record, for programs that read the document; `None` when the record is damaged.
    #[serde(default)]
    pub study: Option<JitterStudy>,
    /// Whether the limits that were given held; `None` when none were given.
    #[serde(default)]
    pub gate: Option<GateOutcome>,
}

impl JitterMeasurement {
    /// The measurement's kind in a document, and the subcommand that makes it.
    pub const KIND: &str = "jitter";

    /// Studies the record with what this version knows, in place of an earlier study.
    ///
    /// # Errors
    /// [`StudyError`] when the record is damaged; an earlier study then stays.
    pub fn study_again(&mut self, context: &RemedyContext<'_>) -> Result<&JitterStudy, StudyError> {
        let study = study_with(&self.record, Some(context))?;
        Ok(self.study.insert(study))
    }
}

impl From<JitterRecord> for JitterMeasurement {
    fn from(record: JitterRecord) -> Self {
        Self { record, study: None, gate: None }
    }
}
