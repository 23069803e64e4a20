//! Runs of the trading pipeline: what was asked, what was measured, and the document that holds both.

mod figures;
mod record;

pub use figures::{StageFigures, Stages};
pub use record::{Mode, PipelineDocument, PipelineParameters, PipelineRecord, ProcessUse};
