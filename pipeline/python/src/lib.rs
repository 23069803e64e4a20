//! The Python module `lowlat`: nodes that join a running master, and recordings.
//!
//! `lowlat.pyi` documents it for readers and type checkers; a test compares it with the module. Waiting
//! functions release the interpreter lock, and check for Ctrl-C every 100 ms.

mod arguments;
mod batches;
mod errors;
mod events;
mod exit;
mod journal;
mod ledger;
mod node;

use lowlat_node::address::RunFolder;
use pyo3::{prelude::*, types::PyModule};
use std::path::PathBuf;

/// Prices are whole numbers in units of 1/PRICE_SCALE of the instrument's currency.
const PRICE_SCALE: i64 = 10_000;

/// Default socket of the master with that name: in $XDG_RUNTIME_DIR/lowlat, /run/lowlat or /tmp/lowlat-UID.
#[pyfunction]
fn socket_of(name: &str) -> PyResult<PathBuf> {
    let folder = RunFolder::named(name).map_err(|error| errors::value(&error))?;
    Ok(folder.socket())
}

/// Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC, or of the recording in a run over one. A process has the
/// clock of the run that it joined last.
#[pyfunction]
fn now_ns() -> u64 {
    lowlat_node::clock::now_ns()
}

/// Nodes of a lowlat pipeline, and recordings.
///
///     with lowlat.join(socket, "mine", instruments=[3]) as node:
///         for event in node:
///             if isinstance(event, lowlat.Quote):
///                 node.order(event, "buy", event.ask, 1)
#[pymodule]
fn lowlat(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PRICE_SCALE", PRICE_SCALE)?;
    module.add_function(wrap_pyfunction!(socket_of, module)?)?;
    module.add_function(wrap_pyfunction!(now_ns, module)?)?;
    module.add_function(wrap_pyfunction!(node::join::join, module)?)?;
    module.add_function(wrap_pyfunction!(node::join::join_node, module)?)?;
    node::add(module)?;
    module.add_class::<journal::Journal>()?;
    module.add_class::<batches::Batches>()?;
    module.add_class::<ledger::OpenOrder>()?;
    events::add(module)?;
    errors::add(module)?;
    exit::register(module)
}
