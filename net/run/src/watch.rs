//! Watches the client's measuring thread: ends it when asked to, or when an answer is missing.

use super::{
    link::{Ended, Shared},
    ping::{LOSSES_MAX, PingError},
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
    /// Returns the outcome of a thread that panicked.
    pub fn died() -> Self {
        Self {
            warning: Some("The measuring thread died; this is a bug in lowlat.".to_owned()),
            ..Self::default()
        }
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
    /// Reports to the server that a message of this size was lost; its answer wakes the thread.
    pub give_up: &'a dyn Fn(usize),
    /// Ends the thread, whatever it waits for.
    pub abort: &'a dyn Fn(),
}

/// Watches until the thread ends. Returns the reason, as a sentence, if it was made to end.
pub fn watch(
    watched: &Watch<'_>,
    stop: &AtomicBool,
    on_size: &(dyn Fn(&SizeRecord) + Sync),
) -> Option<String> {
    let limit = time_limit(watched.scenario);
    let mut aborted = None;
    let (mut arrived, mut since) = (watched.shared.arrived(), Instant::now());
    loop {
        match watched.events.recv_timeout(LOOK_EVERY) {
            Ok(record) => on_size(&record),
            Err(RecvTimeoutError::Disconnected) => return aborted,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = watched.shared.arrived();
        if now != arrived || !watched.batch.is_running() {
            (arrived, since) = (now, Instant::now());
        }
        // Relaxed: set by the signal handler; orders nothing.
        if aborted.is_none() && stop.load(Ordering::Relaxed) {
            aborted = Some("The run was interrupted.".to_owned());
            (watched.abort)();
        } else if aborted.is_none()
            && watched.scenario.transport.may_lose()
            && (limit..limit + RECOVERY_TIME_MAX).contains(&since.elapsed())
        {
            (watched.give_up)(watched.batch.bytes());
        } else if aborted.is_none() && since.elapsed() > limit {
            aborted = Some(format!(
                "No answer came within {} s: a message was lost, or the server stopped. The sizes measured before are \
                 complete.",
                limit.as_secs_f64()
            ));
            (watched.abort)();
        }
    }
}

/// Longest wait for an answer: the scenario's, from the time when the message is due.
fn time_limit(scenario: &Scenario) -> Duration {
    let interval = scenario
        .rate_per_s
        .map_or(Duration::ZERO, |rate| Duration::try_from_secs_f64(1.0 / rate).unwrap_or_default());
    Duration::from_millis(scenario.timeout_ms) + interval
}

/// Says why the run ended at a size.
pub fn sentence(size_bytes: u32, error: &PingError) -> String {
    match error {
        PingError::Data(Ended::Stopped) => format!("The run ended in size {size_bytes}."),
        PingError::Data(ended) => format!("The run ended in size {size_bytes}: {ended}."),
        PingError::Losses => {
            format!("The run ended in size {size_bytes}: more than {LOSSES_MAX} messages were lost.")
        }
        PingError::Control(error) => format!("The run ended in size {size_bytes}: {error}."),
    }
}
