//! Events that are no records.

use pyo3::prelude::*;
use std::sync::Arc;

/// Records of a stream that are lost: the node was too slow, or, of a recording, they are not in it.
#[pyclass(frozen, module = "lowlat")]
#[derive(Debug)]
pub struct Lost {
    pub stream: Arc<str>,
    /// How many.
    #[pyo3(get)]
    pub count: u64,
    /// Why they are not in the recording; else None.
    #[pyo3(get)]
    pub why: Option<String>,
}

#[pymethods]
impl Lost {
    /// The stream.
    #[getter]
    fn stream(&self) -> &str {
        &self.stream
    }
    fn __repr__(&self) -> String {
        format!("Lost(stream='{}', count={})", self.stream, self.count)
    }
}

/// What is damaged in a recording. Reading goes on behind it.
#[pyclass(frozen, module = "lowlat")]
pub struct Damage {
    /// File, offset, and what is wrong.
    #[pyo3(get)]
    text: String,
}

impl Damage {
    pub fn new(text: String) -> Self {
        Self { text }
    }
}

#[pymethods]
impl Damage {
    fn __repr__(&self) -> String {
        format!("Damage({:?})", self.text)
    }
}

/// A word of the master's user.
#[pyclass(frozen, module = "lowlat")]
pub struct Command {
    /// The word.
    #[pyo3(get)]
    text: String,
}

impl Command {
    pub fn new(text: String) -> Self {
        Self { text }
    }
}

#[pymethods]
impl Command {
    fn __repr__(&self) -> String {
        format!("Command({:?})", self.text)
    }
}

/// All nodes are there: publishing may begin.
#[pyclass(frozen, module = "lowlat")]
pub struct Begin;

#[pymethods]
impl Begin {
    #[expect(clippy::unused_self, reason = "as Python calls it")]
    fn __repr__(&self) -> &'static str {
        "Begin()"
    }
}
