//! What executes runs one after the other, for those who need several.

use super::{Progress, RunError};
use lowlat_pipeline::{PipelineParameters, PipelineRecord};

/// Executes runs, one after the other.
pub trait Runner {
    /// Executes a run. If the user interrupts it, the results so far are returned.
    fn run(
        &mut self,
        parameters: &PipelineParameters,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<PipelineRecord, RunError>;
}

/// One of several runs, for those who watch.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Runs in all.
    pub total: usize,
    /// What it is for: a row, or a step of a sizing.
    pub name: &'a str,
    /// What is asked of it.
    pub parameters: &'a PipelineParameters,
}

/// Sees each run and how far it is.
pub type Watch<'a> = dyn FnMut(&Turn<'_>, &Progress) + 'a;

/// An error with its hint on one line, for a warning.
pub(crate) fn on_one_line(error: &impl std::fmt::Display) -> String {
    error.to_string().replace("\nhint: ", "; ")
}
