//! Joins a master.

use super::Node;
use lowlat_node::{Join, Keys, Overrun, Reads, STRATEGIES_MAX, Strategies, Wait, Writes};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::path::PathBuf;

/// Default size of a ring, in bytes.
const CAPACITY_BYTES: u64 = 1 << 20;

/// Joins the master that listens at `socket` as a strategy, and returns its node. It reads the quotes of
/// `instruments` and the answers to its orders. The master assigns a free strategy number, unless `number`
/// requests one. `wait` is "parked" (sleep until woken), "fast" (spin) or "adaptive".
#[pyfunction]
#[pyo3(signature = (socket, name, *, instruments, number = None, wait = "parked", capacity_bytes = CAPACITY_BYTES), text_signature = "(socket, name, *, instruments, number=None, wait='parked', capacity_bytes=1048576)")]
#[expect(clippy::needless_pass_by_value, reason = "as it comes from Python")]
pub fn join(
    py: Python<'_>,
    socket: PathBuf,
    name: &str,
    instruments: Vec<u32>,
    number: Option<u32>,
    wait: &str,
    capacity_bytes: u64,
) -> PyResult<Node> {
    let strategies = match number {
        None => Strategies::Free,
        Some(number) if number < STRATEGIES_MAX => Strategies::Only(vec![number]),
        Some(number) => {
            return Err(PyValueError::new_err(format!(
                "cannot join as strategy number {number}: numbers are below {STRATEGIES_MAX}\n\
                 hint: leave number out to get a free one"
            )));
        }
    };
    let join = lowlat_node::strategy::join(
        name,
        "strategy",
        strategies,
        &instruments,
        capacity_bytes,
        wait_of(wait)?,
    );
    Node::join(py, &socket, &join)
}

/// Joins the master that listens at `socket` as any node. `writes` names the stream that it writes, with
/// instruments below `keys`. `reads` are pairs of a stream ("md", "orders.*") and a selection: None for all, a
/// list of instruments, or "own" for the node's number.
#[pyfunction]
#[pyo3(signature = (socket, name, *, role = "node", writes = None, keys = 1, reads = vec![], wait = "parked", capacity_bytes = CAPACITY_BYTES), text_signature = "(socket, name, *, role='node', writes=None, keys=1, reads=(), wait='parked', capacity_bytes=1048576)")]
#[expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "as it comes from Python")]
pub fn join_node(
    py: Python<'_>,
    socket: PathBuf,
    name: &str,
    role: &str,
    writes: Option<String>,
    keys: u32,
    reads: Vec<(String, Option<Wanted>)>,
    wait: &str,
    capacity_bytes: u64,
) -> PyResult<Node> {
    let reads = reads.into_iter().map(|(streams, wanted)| {
        let keys = match wanted {
            None => Keys::All,
            Some(Wanted::Only(keys)) => Keys::Only(keys),
            Some(Wanted::Word(word)) if word == "own" => Keys::Own,
            Some(Wanted::Word(word)) => {
                let text = format!(
                    "reads of {streams:?}: found {word:?}, expected None, a list of instruments or \"own\""
                );
                return Err(PyValueError::new_err(text));
            }
        };
        Ok(Reads { streams, keys, overrun: Overrun::default() })
    });
    // Fields added to the struct later keep their default.
    let join = Join {
        name: name.to_owned(),
        role: role.to_owned(),
        writes: writes.map(|stream| Writes { stream, capacity_bytes, keys, gives_credit: false }),
        reads: reads.collect::<PyResult<_>>()?,
        wait: wait_of(wait)?,
        ..Join::default()
    };
    Node::join(py, &socket, &join)
}

/// Records to read: a word, or a list of instruments.
#[derive(FromPyObject)]
pub enum Wanted {
    Word(String),
    Only(Vec<u32>),
}

fn wait_of(wait: &str) -> PyResult<Wait> {
    match wait {
        "parked" => Ok(Wait::Parked),
        "fast" => Ok(Wait::Fast),
        "adaptive" => Ok(Wait::Adaptive),
        _ => Err(PyValueError::new_err(format!(
            "wait {wait:?}: expected \"parked\", \"fast\" or \"adaptive\""
        ))),
    }
}
