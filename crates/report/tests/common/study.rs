//! The study that a document carries beside its record.

use lowlat_jitter::{JitterStudy, RemedyContext, study_with};
use lowlat_result::ResultDocument;

/// What lowlat says of the document's record on the document's host.
pub fn of(document: &ResultDocument) -> Option<JitterStudy> {
    let (host, allocation, role) = (&document.snapshot, &document.allocation, &document.role);
    study_with(&document.jitter()?.record, Some(&RemedyContext { host, allocation, role })).ok()
}
