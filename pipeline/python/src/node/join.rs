//! Joins a master.

use super::Node;
use crate::arguments::{self, numbers, whole, whole_or_none};
use lowlat_node::{Join, Overrun, Reads, STRATEGIES_MAX, Strategies, Writes, strategy};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::path::PathBuf;

/// Default size of a ring, in bytes.
const CAPACITY_BYTES: u64 = 1 << 20;

/// Joins the master that listens at `socket` as a strategy, and returns its node. It reads the quotes of
/// `instruments`, the answers to its orders, and other streams (`reads`, as in join_node). `overrun` is the policy for
/// quotes that it is too slow for: "gap", "conflate", "credit" or ("evict", number). `start` is its first quote: "head",
/// "oldest" or ("after", sequence). The master assigns a free strategy
/// number, unless `number` requests one. `wait` is "parked" (sleep until woken), "fast" (spin) or "adaptive".
#[pyfunction]
#[pyo3(signature = (socket, name, *, instruments, number = None, reads = None, overrun = None, start = None, wait = "parked", capacity_bytes = None), text_signature = "(socket, name, *, instruments, number=None, reads=(), overrun='gap', start='head', wait='parked', capacity_bytes=1048576)")]
#[expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "as it comes from Python")]
pub fn join(
    py: Python<'_>,
    socket: PathBuf,
    name: &str,
    instruments: &Bound<'_, PyAny>,
    number: Option<&Bound<'_, PyAny>>,
    reads: Option<&Bound<'_, PyAny>>,
    overrun: Option<&Bound<'_, PyAny>>,
    start: Option<&Bound<'_, PyAny>>,
    wait: &str,
    capacity_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let strategies = match whole_or_none(number, "number")? {
        None => Strategies::Free,
        Some(number) if number < STRATEGIES_MAX => Strategies::Only(vec![number]),
        Some(number) => {
            return Err(PyValueError::new_err(format!(
                "number {number}: expected 0 to {}\nhint: leave number out to get a free one",
                STRATEGIES_MAX - 1
            )));
        }
    };
    let instruments = numbers(instruments, "instruments")?;
    let wait = arguments::wait(wait)?;
    let join = strategy::join(name, "strategy", strategies, &instruments, capacity(capacity_bytes)?, wait);
    let join = strategy::with_overrun(join, policy(overrun)?);
    let mut join = strategy::starting(join, start.map(arguments::start).transpose()?.unwrap_or_default());
    join.reads.extend(streams(reads)?);
    Node::join(py, &socket, &join)
}

/// Joins the master that listens at `socket` as any node. `writes` names the stream that it writes, with
/// instruments below `keys`; with `gives_credit` its publishing is refused (NoCredit) while a reader that asked for
/// "credit" has no room. `reads` are tuples of a stream ("md", "orders.*"), a selection (None for all, a list of
/// instruments, or "own" for the node's number) and, if wanted, a policy for overruns and a start as in join.
#[pyfunction]
#[pyo3(signature = (socket, name, *, role = "node", writes = None, keys = None, gives_credit = false, reads = None, wait = "parked", capacity_bytes = None), text_signature = "(socket, name, *, role='node', writes=None, keys=1, gives_credit=False, reads=(), wait='parked', capacity_bytes=1048576)")]
#[expect(clippy::needless_pass_by_value, clippy::too_many_arguments, reason = "as it comes from Python")]
pub fn join_node(
    py: Python<'_>,
    socket: PathBuf,
    name: &str,
    role: &str,
    writes: Option<String>,
    keys: Option<&Bound<'_, PyAny>>,
    gives_credit: bool,
    reads: Option<&Bound<'_, PyAny>>,
    wait: &str,
    capacity_bytes: Option<&Bound<'_, PyAny>>,
) -> PyResult<Node> {
    let keys = whole_or_none(keys, "keys")?.unwrap_or(1);
    let capacity_bytes = capacity(capacity_bytes)?;
    let writes = writes.map(|stream| Writes::new(&stream, capacity_bytes, keys));
    let writes = if gives_credit { writes.map(Writes::giving_credit) } else { writes };
    let join = Join::new(name, role).writing(writes).reading(streams(reads)?).waiting(arguments::wait(wait)?);
    Node::join(py, &socket, &join)
}

fn capacity(bytes: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    bytes.map_or(Ok(CAPACITY_BYTES), |bytes| whole(bytes, "capacity_bytes"))
}

fn policy(overrun: Option<&Bound<'_, PyAny>>) -> PyResult<Overrun> {
    overrun.map_or_else(|| Ok(Overrun::default()), arguments::overrun)
}

fn streams(reads: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Reads>> {
    reads.map_or_else(|| Ok(Vec::new()), arguments::reads)
}
