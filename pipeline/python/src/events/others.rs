//! Events other than records. Each is equal to another with the same values, and can be copied and pickled.

use pyo3::prelude::*;
use std::sync::Arc;

/// Lost records of a stream: the node was too slow, or they are missing from the recording.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(Debug, PartialEq, Eq, Hash)]
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
    #[new]
    #[pyo3(signature = (stream, count, why = None))]
    fn new(stream: &str, count: u64, why: Option<String>) -> Self {
        Self { stream: stream.into(), count, why }
    }
    /// The stream.
    #[getter]
    fn stream(&self) -> &str {
        &self.stream
    }
    fn __getnewargs__(&self) -> (&str, u64, Option<&str>) {
        (&self.stream, self.count, self.why.as_deref())
    }
    fn __repr__(&self) -> String {
        format!("Lost(stream='{}', count={})", self.stream, self.count)
    }
}

/// Damage of a recording. Reading continues after it.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(PartialEq, Eq, Hash)]
pub struct Damage {
    /// File, offset and problem.
    #[pyo3(get)]
    pub text: String,
}

#[pymethods]
impl Damage {
    #[new]
    fn new(text: String) -> Self {
        Self { text }
    }
    fn __getnewargs__(&self) -> (&str,) {
        (&self.text,)
    }
    fn __repr__(&self) -> String {
        format!("Damage({:?})", self.text)
    }
}

/// A command of the master's user.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(PartialEq, Eq, Hash)]
pub struct Command {
    /// The text.
    #[pyo3(get)]
    pub text: String,
}

#[pymethods]
impl Command {
    #[new]
    fn new(text: String) -> Self {
        Self { text }
    }
    fn __getnewargs__(&self) -> (&str,) {
        (&self.text,)
    }
    fn __repr__(&self) -> String {
        format!("Command({:?})", self.text)
    }
}

/// All nodes have joined: publishing may start.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(PartialEq, Eq, Hash)]
pub struct Begin;

#[pymethods]
impl Begin {
    #[new]
    fn new() -> Self {
        Self
    }
    #[expect(clippy::unused_self, reason = "as Python calls it")]
    fn __repr__(&self) -> &'static str {
        "Begin()"
    }
}

/// The time set with Node.set_timer has come.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(PartialEq, Eq, Hash)]
pub struct Timer {
    /// That time.
    #[pyo3(get)]
    pub due_ns: u64,
}

#[pymethods]
impl Timer {
    #[new]
    fn new(due_ns: u64) -> Self {
        Self { due_ns }
    }
    fn __getnewargs__(&self) -> (u64,) {
        (self.due_ns,)
    }
    fn __repr__(&self) -> String {
        format!("Timer(due_ns={})", self.due_ns)
    }
}
