//! Watches the client's measuring thread: ends it when asked to, or when an answer is missing.

use super::{
    control::Control,
    link::{Ended, Shared, Wires},
    ping::PingError,
    pong::Batch,
};
use lowlat_net::pingpong::{ControlRow, IrqSuspend, Scenario, SizeRecord, parts::PartsFacts};
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

/// Longest time in which a client tries to give up a lost message, after the time limit.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(2);
/// Time between two checks of the measuring thread.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Warning of a thread that panicked.
pub const DIED: &str = "The measuring thread died; this is a bug in lowlat.";

/// Results of the measuring thread.
#[derive(Debug, Default)]
pub struct Outcome {
    pub sizes: Vec<SizeRecord>,
    pub controls: Vec<ControlRow>,
    /// Facts about how the parts were found.
    pub parts: Option<PartsFacts>,
    /// Queues of client and server.
    pub napi_ids: [Option<u32>; 2],
    /// Suspension of the interrupts of the server's queue.
    pub server_irq_suspend: Option<IrqSuspend>,
    /// Reason why it ended early.
    pub warning: Option<String>,
    /// Reason why a control is missing.
    pub control_warning: Option<String>,
}

impl Outcome {
    /// Returns the outcome of a thread that ended early.
    pub fn early(warning: impl Into<String>) -> Self {
        Self { warning: Some(warning.into()), ..Self::default() }
    }
}

/// Access to the measuring thread.
pub struct Watch<'a> {
    /// Sizes as they are complete; closed when the thread ends.
    pub events: Receiver<SizeRecord>,
    pub shared: &'a Shared,
    /// State of the batch in progress.
    pub batch: &'a Batch,
    /// The scenario, for its time limit.
    pub scenario: &'a Scenario,
    pub wires: &'a Wires,
    pub control: &'a Control,
}

/// Ends the thread that uses them, whatever it waits for.
pub fn abort(shared: &Shared, wires: &Wires, control: &Control) {
    shared.stop();
    wires.wake();
    control.close();
}

/// Watches until the thread ends. Returns the reason, as a sentence, if it was made to end.
pub fn watch(
    watched: &Watch<'_>,
    stop: &AtomicBool,
    on_size: &(dyn Fn(&SizeRecord) + Sync),
) -> Option<String> {
    let Watch { shared, batch, scenario, wires, control, .. } = watched;
    // The scenario's, from the time when the message is due.
    let limit = Duration::from_millis(scenario.timeout_ms) + scenario.interval();
    let mut aborted = None;
    let (mut arrived, mut since) = (shared.arrived(), Instant::now());
    loop {
        match watched.events.recv_timeout(LOOK_EVERY) {
            Ok(record) => on_size(&record),
            Err(RecvTimeoutError::Disconnected) => return aborted,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = shared.arrived();
        if now != arrived || !batch.is_running() {
            (arrived, since) = (now, Instant::now());
        }
        if aborted.is_some() {
            continue;
        }
        // Relaxed: set by the signal handler; orders nothing.
        if stop.load(Ordering::Relaxed) {
            aborted = Some("The run was interrupted.".to_owned());
            abort(shared, wires, control);
        } else if scenario.transport.may_lose()
            && (limit..limit + RECOVERY_TIME_MAX).contains(&since.elapsed())
        {
            // The server's answer wakes the thread.
            wires.give_up(batch.bytes(), shared.first());
        } else if since.elapsed() > limit {
            aborted = Some(format!(
                "No answer came within {} s: a message was lost, or the server stopped. The sizes measured before are \
                 complete.",
                limit.as_secs_f64()
            ));
            abort(shared, wires, control);
        }
    }
}

/// Says why the run ended in a part of it, such as a size.
pub fn sentence(part: &str, error: &PingError) -> String {
    match error {
        PingError::Data(Ended::Stopped) => format!("The run ended in {part}."),
        error => format!("The run ended in {part}: {error}."),
    }
}
