//! Events of nodes and recordings as Python objects.

mod others;
mod record;

pub use others::{Begin, Command, Damage, Lost, Timer};
pub use record::{Answer, Order, Quote, Record, cause_of};

use pyo3::{IntoPyObjectExt, prelude::*};
use std::sync::Arc;

/// A pending event, not yet a Python object.
#[derive(Debug)]
pub enum PendingEvent {
    Record(Record),
    Lost(Lost),
    Damage(String),
    Command(String),
    Begin,
    Timer(u64),
}

/// Names of streams: consecutive records usually share one.
#[derive(Debug, Default)]
pub struct Names(Option<Arc<str>>);

impl Names {
    pub fn get(&mut self, name: &str) -> Arc<str> {
        match &self.0 {
            Some(last) if **last == *name => Arc::clone(last),
            _ => Arc::clone(self.0.insert(Arc::from(name))),
        }
    }
}

impl PendingEvent {
    pub fn into_object(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Record(record) => record.into_object(py),
            Self::Lost(lost) => lost.into_py_any(py),
            Self::Damage(text) => Damage { text }.into_py_any(py),
            Self::Command(text) => Command { text }.into_py_any(py),
            Self::Begin => Begin.into_py_any(py),
            Self::Timer(due_ns) => Timer { due_ns }.into_py_any(py),
        }
    }
}

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Record>()?;
    module.add_class::<Quote>()?;
    module.add_class::<Order>()?;
    module.add_class::<Answer>()?;
    module.add_class::<Lost>()?;
    module.add_class::<Damage>()?;
    module.add_class::<Command>()?;
    module.add_class::<Begin>()?;
    module.add_class::<Timer>()?;
    module.add_function(wrap_pyfunction!(record::_record, module)?)
}
