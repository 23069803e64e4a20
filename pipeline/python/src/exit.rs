//! The interpreter's end beside threads that wait.
//!
//! A thread that asks for the interpreter's lock once the interpreter has ended is unwound by Python before 3.14, through
//! this module's functions too, and the process dies of a signal. So what waits does it in [`detached`], and from the
//! interpreter's exit handlers on a daemon thread in it never comes back: it ends its work and sleeps until the process
//! has ended.

use pyo3::{prelude::*, types::IntoPyDict as _};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

/// Longest wait for other threads: three slices of a wait.
const OTHERS: Duration = Duration::from_millis(300);

/// The thread that ends the interpreter, once it does.
static ENDING: OnceLock<ThreadId> = OnceLock::new();
/// Threads in [`detached`], and those of them that sleep until the process has ended.
static DETACHED: AtomicUsize = AtomicUsize::new(0);
static ASLEEP: AtomicUsize = AtomicUsize::new(0);

/// True if the interpreter ends and this is not the thread that ends it.
pub fn is_over() -> bool {
    ENDING.get().is_some_and(|ending| *ending != thread::current().id())
}

/// Runs `work` without the interpreter's lock. At the interpreter's end it does not return.
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    // Counted and uncounted with the interpreter's lock, which orders it before or after `end`.
    DETACHED.fetch_add(1, Ordering::SeqCst);
    let done = py.detach(|| {
        let done = work();
        if is_over() {
            ASLEEP.fetch_add(1, Ordering::SeqCst);
            loop {
                thread::park();
            }
        }
        done
    });
    DETACHED.fetch_sub(1, Ordering::SeqCst);
    done
}

/// The exit handler: waits until every thread in [`detached`] sleeps or is back.
#[pyfunction]
fn end(py: Python<'_>) {
    ENDING.get_or_init(|| thread::current().id());
    py.detach(|| {
        let start = Instant::now();
        while DETACHED.load(Ordering::SeqCst) > ASLEEP.load(Ordering::SeqCst) && start.elapsed() < OTHERS {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// In a forked process: the threads that waited do not exist there.
#[pyfunction]
fn forget() {
    DETACHED.store(0, Ordering::SeqCst);
    ASLEEP.store(0, Ordering::SeqCst);
}

/// Registers the handlers.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(end, module)?,))?;
    let forks = [("after_in_child", wrap_pyfunction!(forget, module)?)].into_py_dict(py)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&forks))?;
    Ok(())
}
