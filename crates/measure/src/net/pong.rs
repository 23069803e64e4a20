//! The server's side of a run: answers batches of messages.

use super::{
    control::{Control, ControlError, unexpected},
    link::{Ended, Link, Shared},
};
use lowlat_net::pingpong::{Scenario, protocol::Message};
use std::{
    fmt,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Longest time between two batches.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Why a run ended early.
#[derive(Debug)]
pub enum ServeError {
    /// The control connection failed.
    Control(ControlError),
    /// The data path failed.
    Data(Ended),
    /// The client asked for something that its scenario excludes.
    Batch {
        /// Size that it asked for.
        size_bytes: u32,
        /// Number of messages.
        count: u64,
    },
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control(error) => error.fmt(f),
            Self::Data(ended) => ended.fmt(f),
            Self::Batch { size_bytes, count } => {
                write!(
                    f,
                    "the client asked for {count} messages of {size_bytes} bytes, which its scenario excludes"
                )
            }
        }
    }
}

impl From<ControlError> for ServeError {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

/// Whether a thread waits for messages, for the thread that watches it.
#[derive(Debug, Default)]
pub struct Batch(AtomicBool);

impl Batch {
    /// Runs a part of which the other thread is to know.
    pub fn during<T>(&self, part: impl FnOnce() -> T) -> T {
        // Relaxed: pairs with the load in `is_running`; a moment's delay does not matter.
        self.0.store(true, Ordering::Relaxed);
        let result = part();
        self.0.store(false, Ordering::Relaxed);
        result
    }

    /// Whether messages are awaited.
    pub fn is_running(&self) -> bool {
        // Relaxed: pairs with the stores in `during`.
        self.0.load(Ordering::Relaxed)
    }
}

/// Answers batches until the client ends the run. Returns the messages answered, with the error that ended it early.
pub fn serve(
    control: &Control,
    link: &mut Link,
    scenario: &Scenario,
    shared: &Shared,
    batch: &Batch,
) -> (u64, Result<(), ServeError>) {
    let result = serve_batches(control, link, scenario, batch);
    (shared.arrived(), result)
}

fn serve_batches(
    control: &Control,
    link: &mut Link,
    scenario: &Scenario,
    batch: &Batch,
) -> Result<(), ServeError> {
    loop {
        match control.receive(IDLE_MAX)? {
            Message::Batch { size_bytes, count } => {
                if !scenario.sizes.contains(&size_bytes) || count > scenario.iterations_max.saturating_add(1)
                {
                    return Err(ServeError::Batch { size_bytes, count });
                }
                control.send(&Message::Ready)?;
                batch.during(|| echo(link, size_bytes, count)).map_err(ServeError::Data)?;
                control.send(&Message::Done { napi_id: link.wires().napi_id() })?;
            }
            Message::End => return Ok(()),
            other => return Err(unexpected(&other).into()),
        }
    }
}

fn echo(link: &mut Link, size_bytes: u32, count: u64) -> Result<(), Ended> {
    let bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
    for _ in 0..count {
        link.receive(bytes)?;
        link.send(bytes)?;
    }
    Ok(())
}
