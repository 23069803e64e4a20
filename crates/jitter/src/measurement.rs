//! One jitter measurement in a result document.

use crate::{JitterRecord, JitterStudy, RemedyContext, StudyError, gate::GateOutcome, study_with};
use serde::{Deserialize, Serialize};

/// A record and its results.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JitterMeasurement {
    /// The record.
    pub record: JitterRecord,
    /// The study of the record, for programs that read the document; `None` if the record is damaged.
    pub study: Option<JitterStudy>,
    /// Whether the given limits were met; `None` if none were given.
    pub gate: Option<GateOutcome>,
}

impl JitterMeasurement {
    /// The measurement's kind in a document, which is also the name of its subcommand.
    pub const KIND: &str = "jitter";

    /// Studies the record with this version's methods, replacing an earlier study.
    ///
    /// # Errors
    /// [`StudyError`] if the record is damaged; an earlier study is then kept.
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
