//! The study that a document contains beside its record.

use lowlat_jitter::{JitterStudy, RemedyContext, study_with};
use lowlat_results::ResultDocument;

/// Studies the document's record for the document's host.
pub fn of(document: &ResultDocument) -> Option<JitterStudy> {
    let (host, allocation, role) = (&document.snapshot, &document.allocation, &document.role);
    study_with(&document.jitter()?.record, Some(&RemedyContext { host, allocation, role })).ok()
}
