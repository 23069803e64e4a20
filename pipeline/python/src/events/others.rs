//! Events other than records.

use pyo3::prelude::*;
use std::sync::Arc;

/// Lost records of a stream: the node was too slow, or they are missing from the recording.
#[pyclass(frozen, module = "lowlat")]
#[derive(Debug)]
pub struct Lost {
    pub stream: Arc<str>,
    /// Number of records.
    #[pyo3(get)]
    pub count: u64,
    /// Why they are missing from the recording; None for a node.
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

/// Damage of a recording. Reading continues after it.
#[pyclass(frozen, module = "lowlat")]
pub struct Damage {
    /// File, offset and problem.
    #[pyo3(get)]
    pub text: String,
}

#[pymethods]
impl Damage {
    fn __repr__(&self) -> String {
        format!("Damage({:?})", self.text)
    }
}

/// A command of the master's user.
#[pyclass(frozen, module = "lowlat")]
pub struct Command {
    /// The text.
    #[pyo3(get)]
    pub text: String,
}

#[pymethods]
impl Command {
    fn __repr__(&self) -> String {
        format!("Command({:?})", self.text)
    }
}

/// All nodes have joined: publishing may start.
#[pyclass(frozen, module = "lowlat")]
pub struct Begin;

#[pymethods]
impl Begin {
    #[expect(clippy::unused_self, reason = "as Python calls it")]
    fn __repr__(&self) -> &'static str {
        "Begin()"
    }
}
