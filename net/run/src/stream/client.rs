//! A run of rising rates from the client's side.

use super::send::{Plan, Sender, Sent};
use crate::{
    client::{ClientOptions, Run, prepare},
    control::{Control, unexpected},
    core_to_core,
    error::PingpongError,
    link::{Ended, Shared, Wires},
    ping::PingError,
    place,
    watch::{DIED, abort, sentence},
};
use hdrhistogram::Histogram;
use lowlat_host_run::Root;
use lowlat_jitter_run::clock::TickScale;
use lowlat_net::{
    pingpong::{ControlRow, End, Scenario, Unsound, protocol::Message},
    stream::{Distribution, LatencyKind, Received, StreamOptions, StreamRecord, StreamRound, next_rate},
};
use rustix::event::PollFlags;
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest wait for the server before a round.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Time between two messages that end a round; one of them may be lost.
const END_EVERY: Duration = Duration::from_millis(20);
/// Time between two checks of the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Messages of the idle path, and how many there are each second.
const IDLE_MESSAGES: u64 = 200;
const IDLE_PER_S: f64 = 1_000.0;
/// Most echoes of a round: enough for a p99.9, and few enough not to load the return path.
const ECHOES_MAX: u64 = 5_000;

#[derive(Debug, Clone, PartialEq)]
pub struct StreamClientOptions {
    /// Scenario, server and the like. The scenario's one size is that of the messages.
    pub client: ClientOptions,
    pub stream: StreamOptions,
}

/// Measures rates one after another. Ends early, with what it has, when `stop` is raised. `on_round` gets each round as
/// it is complete.
///
/// # Errors
/// [`PingpongError`] if nothing could be measured.
pub fn run(
    root: &Root,
    options: &StreamClientOptions,
    stop: &AtomicBool,
    on_round: &(dyn Fn(&StreamRound) + Sync),
) -> Result<StreamRecord, PingpongError> {
    let mut run = prepare(root, &options.client, stop, &|_| {})?;
    let mut record = StreamRecord { options: options.stream.clone(), ..StreamRecord::default() };
    let _idle = run.hold_idle();
    run.network(&options.client.server, |run, control, wires| {
        measure(run, control, wires, &mut record, on_round)
    })?;
    record.set_up = run.record;
    // The client spins until messages are due.
    record.set_up.unsound.retain(|one| *one != Unsound::IdleStates { end: End::Client });
    Ok(record)
}

/// State of the measuring thread.
struct Rounds<'a> {
    control: &'a Control,
    sender: Sender<'a>,
    scenario: &'a Scenario,
    scale: TickScale,
    percentile: f64,
    kind: LatencyKind,
    /// Half the shortest round trip so far.
    return_ns: Option<u64>,
    number: u32,
    napi_id: Option<u32>,
}

fn measure(
    run: &mut Run<'_>,
    control: &Control,
    wires: &Wires,
    record: &mut StreamRecord,
    on_round: &(dyn Fn(&StreamRound) + Sync),
) -> Result<(), PingpongError> {
    let shared_kind = if run.record.is_same_host { LatencyKind::OneWay } else { LatencyKind::Echo };
    let kind = record.options.latency.unwrap_or(shared_kind);
    if kind == LatencyKind::OneWay && !run.record.is_same_host {
        return Err(PingpongError::NoSharedCounter);
    }
    record.latency = kind;
    let scenario = run.record.scenario.clone();
    report_drops(wires);
    let shared = Shared::default();
    let control_cpus = run.control_cpus();
    let (scale, percentile) = (run.scale, run.record.percentile);
    let (events, watched) = mpsc::channel();
    let options = record.options.clone();
    let (outcome, is_stopped) = thread::scope(|scope| -> Result<_, PingpongError> {
        let (scenario, shared) = (&scenario, &shared);
        let body = move || {
            if let Err(sentence) = place::pin(scenario.client_cpu) {
                return (None, None, Some(sentence));
            }
            place::own_descriptors();
            let mut rounds = Rounds {
                control,
                sender: Sender::new(wires, shared, scale, scenario),
                scenario,
                scale,
                percentile,
                kind,
                return_ns: None,
                number: 0,
                napi_id: None,
            };
            let ended = rounds.all(&options, &events).err();
            (rounds.return_ns, rounds.napi_id, ended.map(|error| sentence("a round", &error)))
        };
        let row =
            |count| control_cpus.map(|(client, server)| core_to_core::measure(client, server, scale, count));
        let before = row(0);
        let measuring = thread::Builder::new().name("lowlat-client".into()).spawn_scoped(scope, body);
        let measuring = measuring.map_err(PingpongError::Thread)?;
        let mut is_stopped = false;
        loop {
            match watched.recv_timeout(LOOK_EVERY) {
                Ok(round) => {
                    on_round(&round);
                    record.rounds.push(round);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            // Relaxed: set by the signal handler; orders nothing.
            if !is_stopped && run.stop.load(Ordering::Relaxed) {
                is_stopped = true;
                abort(shared, wires, control);
            }
        }
        let outcome = measuring.join();
        add_control(run, before);
        let measured = u32::try_from(record.rounds.len()).unwrap_or(u32::MAX);
        add_control(run, row(measured));
        Ok((outcome, is_stopped))
    })?;
    let (return_ns, napi_id, warning) = outcome.unwrap_or_else(|_| (None, None, Some(DIED.to_owned())));
    (record.return_ns, run.record.server.napi_id) = (return_ns, napi_id);
    let warning = if is_stopped { Some("The run was interrupted.".to_owned()) } else { warning };
    run.record.has_ended_early = warning.is_some();
    run.record.warnings.extend(warning);
    Ok(())
}

/// Makes sending report messages that the queueing discipline of this host drops (IP_RECVERR).
fn report_drops(wires: &Wires) {
    let socket = wires.receiving();
    for (level, option) in [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)] {
        // Each family has one of them; TCP needs none.
        let _ = crate::calls::set_option(socket, level, option, 1);
    }
}

fn add_control(run: &mut Run<'_>, row: Option<Result<ControlRow, String>>) {
    match row {
        Some(Ok(row)) => run.record.controls.push(row),
        Some(Err(sentence)) => run.record.warnings.push(sentence),
        None => {}
    }
}

impl Rounds<'_> {
    /// Measures the rates in order.
    fn all(&mut self, options: &StreamOptions, events: &mpsc::Sender<StreamRound>) -> Result<(), PingError> {
        if self.kind == LatencyKind::Echo {
            let idle = self.round(IDLE_PER_S, IDLE_MESSAGES, 1)?;
            self.learn_return(&idle.0.echoes);
        }
        let mut rounds = Vec::new();
        while let Some(per_s) = next_rate(options, &rounds) {
            let count = messages(per_s, options.time_ms).min(self.scenario.iterations_max);
            let echo_every = match self.kind {
                LatencyKind::OneWay => 0,
                LatencyKind::Echo => count.div_ceil(ECHOES_MAX).max(1),
            };
            let (sent, received) = self.round(per_s, count, echo_every)?;
            self.learn_return(&sent.echoes);
            let round = self.record(per_s, &sent, received);
            // The watching thread ends after this one.
            let _ = events.send(round.clone());
            rounds.push(round);
        }
        Ok(())
    }

    /// Keeps half the shortest round trip. A busy host may have had a shorter one after the idle path was measured.
    fn learn_return(&mut self, echoes: &Histogram<u64>) {
        if !echoes.is_empty() {
            let half = echoes.min() / 2;
            self.return_ns = Some(self.return_ns.map_or(half, |known| known.min(half)));
        }
    }

    /// Announces a round, sends it, and ends it until the server has counted it.
    fn round(&mut self, per_s: f64, count: u64, echo_every: u64) -> Result<(Sent, Received), PingError> {
        self.number += 1;
        let round = self.number;
        let counter_hz = (self.kind == LatencyKind::OneWay).then(|| self.scale.hz());
        let size_bytes = self.scenario.sizes.first().copied().unwrap_or(0);
        self.control.send(&Message::Round { round, size_bytes, count, counter_hz })?;
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::Ready { .. } => {}
            other => return Err(unexpected(&other).into()),
        }
        let sent = self.sender.send_round(&Plan { round, count, per_s, echo_every })?;
        let limit = Duration::from_millis(self.scenario.timeout_ms);
        let start = Instant::now();
        while !self.control.is_ready(PollFlags::IN, END_EVERY) {
            if start.elapsed() > limit {
                return Err(PingError::Data(Ended::Failed(std::io::Error::other(
                    "the server did not report the end of the round",
                ))));
            }
            self.sender.send_end(round)?;
        }
        match self.control.receive(ANSWER_TIME_MAX)? {
            Message::RoundDone { received, napi_id } => {
                self.napi_id = napi_id;
                Ok((sent, *received))
            }
            other => Err(unexpected(&other).into()),
        }
    }

    fn record(&self, target_per_s: f64, sent: &Sent, mut received: Received) -> StreamRound {
        let latency = match (self.kind, received.histogram.take()) {
            // A damaged histogram of the server leaves the latency out.
            (LatencyKind::OneWay, Some(text)) => Distribution::decoded(&text, self.percentile).ok().flatten(),
            (LatencyKind::OneWay, None) => None,
            (LatencyKind::Echo, _) => Distribution::of(&less(&sent.echoes, self.return_ns), self.percentile),
        };
        StreamRound {
            target_per_s,
            sent: sent.messages,
            dropped_by_sender: sent.dropped,
            received,
            behind: sent.behind,
            elapsed_ns: sent.elapsed_ns,
            latency,
            lateness: Distribution::of(&sent.lateness, self.percentile),
        }
    }
}

/// Round trips without the time of the return path.
fn less(echoes: &Histogram<u64>, return_ns: Option<u64>) -> Histogram<u64> {
    let mut times = super::times();
    for value in echoes.iter_recorded() {
        let ns = value.value_iterated_to().saturating_sub(return_ns.unwrap_or(0));
        times.saturating_record_n(ns, value.count_at_value());
    }
    times
}

/// Messages of a round; at least one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, as intended")]
fn messages(per_s: f64, time_ms: u64) -> u64 {
    ((per_s * time_ms as f64 / 1_000.0) as u64).max(1)
}
