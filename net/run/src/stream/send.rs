//! The client's side of a round: sends each message when it is due, and times echoes.

use super::times;
use crate::{
    calls::{self, Wait},
    link::{Ended, Shared, Wires},
};
use hdrhistogram::Histogram;
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter, TickScale};
use lowlat_net::{
    pingpong::Scenario,
    stream::{FLAG_ECHO, FLAG_END, Header},
    whole,
};
use std::{hint, io};

/// A round ends when it takes this many times as long as planned.
const OVERTIME: u64 = 2;
/// Messages between two checks of the stop flag.
const MESSAGES_PER_LOOK: u64 = 64;
/// Longest wait for echoes after the last message, in milliseconds.
const ECHO_TIME_MS_MAX: u64 = 20;

/// Messages to be sent in a round.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub round: u32,
    pub count: u64,
    pub per_s: f64,
    /// Every so many messages one is to be sent back; 0 for none.
    pub echo_every: u64,
}

/// Messages sent in a round, and their echoes.
pub struct Sent {
    pub messages: u64,
    /// Messages that the queueing discipline of this host dropped.
    pub dropped: u64,
    /// Messages that were sent after the next one was due.
    pub behind: u64,
    /// Time between the first and the last sending.
    pub elapsed_ns: u64,
    /// Delays of the messages after they were due, in nanoseconds.
    pub lateness: Histogram<u64>,
    /// Round trips of the echoes, from the time when each message was due.
    pub echoes: Histogram<u64>,
}

/// Sends on a connected socket.
pub struct Sender<'a> {
    wires: &'a Wires,
    shared: &'a Shared,
    scale: TickScale,
    message: Vec<u8>,
    echo: Vec<u8>,
    /// Bytes of the echo that have arrived; a stream may cut messages.
    have: usize,
    is_stream: bool,
    /// Longest wait of a message for room in the socket.
    wait_ticks_max: u64,
    /// Echoes that have not arrived.
    awaited: u64,
}

impl<'a> Sender<'a> {
    pub fn new(wires: &'a Wires, shared: &'a Shared, scale: TickScale, scenario: &Scenario) -> Self {
        let bytes = scenario.sizes.first().map_or(0, |bytes| usize::try_from(*bytes).unwrap_or(0));
        Self {
            wires,
            shared,
            scale,
            message: vec![0x5a; bytes],
            echo: vec![0x5a; bytes],
            have: 0,
            is_stream: scenario.transport.is_stream(),
            wait_ticks_max: (scale.hz() / 1_000).saturating_mul(scenario.timeout_ms),
            awaited: 0,
        }
    }

    /// Sends the messages of a round, each when it is due, or at once if the ones before it took longer.
    pub fn send_round(&mut self, plan: &Plan) -> Result<Sent, Ended> {
        let hz = self.scale.hz() as f64;
        let interval = hz / plan.per_s;
        let first = ArchCounter.now().wrapping_add(self.scale.hz() / 1_000);
        let deadline = first.wrapping_add(whole(interval * plan.count as f64).saturating_mul(OVERTIME));
        let mut sent =
            Sent { messages: 0, dropped: 0, behind: 0, elapsed_ns: 0, lateness: times(), echoes: times() };
        let (mut started, mut last) = (first, first);
        self.awaited = 0;
        for sequence in 0..plan.count {
            let due = first.wrapping_add(whole(interval * sequence as f64));
            let mut now = ArchCounter.now();
            while now < due {
                self.take_echoes(plan.round, &mut sent.echoes)?;
                hint::spin_loop();
                now = ArchCounter.now();
            }
            if sequence.is_multiple_of(MESSAGES_PER_LOOK) && self.shared.is_stopped() {
                return Err(Ended::Stopped);
            }
            if now > deadline {
                break;
            }
            let is_echoed = plan.echo_every > 0 && sequence.is_multiple_of(plan.echo_every);
            let flags = if is_echoed { FLAG_ECHO } else { 0 };
            if !self.send(Header { sequence, due_ticks: due, round: plan.round, flags })? {
                sent.dropped += 1;
            } else if is_echoed {
                self.awaited += 1;
                self.take_echoes(plan.round, &mut sent.echoes)?;
            }
            sent.messages += 1;
            let late = now.saturating_sub(due);
            sent.behind += u64::from(late as f64 > interval);
            sent.lateness.saturating_record(self.scale.ns(late));
            started = if sequence == 0 { now } else { started };
            last = now;
        }
        sent.elapsed_ns = self.scale.ns(last.saturating_sub(started));
        self.take_last_echoes(plan.round, &mut sent.echoes)?;
        Ok(sent)
    }

    /// Sends the message that ends the round.
    pub fn send_end(&mut self, round: u32) -> Result<(), Ended> {
        self.send(Header { round, flags: FLAG_END, ..Header::default() }).map(drop)
    }

    /// Sends a message; `false` if this host dropped it.
    fn send(&mut self, header: Header) -> Result<bool, Ended> {
        let bytes = header.to_bytes();
        if let Some(to) = self.message.get_mut(..bytes.len()) {
            to.copy_from_slice(&bytes);
        }
        let mut left = self.message.as_slice();
        let mut since = None;
        loop {
            match calls::send(self.wires.receiving(), left, Wait::Not) {
                Ok(sent) if sent >= left.len() => return Ok(true),
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) => match error.raw_os_error() {
                    Some(libc::ENOBUFS) => return Ok(false),
                    Some(libc::EAGAIN | libc::EINTR) => {
                        if self.shared.is_stopped() {
                            return Err(Ended::Stopped);
                        }
                        let now = ArchCounter.now();
                        if now.saturating_sub(*since.get_or_insert(now)) > self.wait_ticks_max {
                            return Err(Ended::Failed(io::Error::other("the server takes no more messages")));
                        }
                        hint::spin_loop();
                    }
                    _ => return Err(self.shared.ended(Ended::Failed(error))),
                },
            }
        }
    }

    /// Takes the echoes that have arrived.
    fn take_echoes(&mut self, round: u32, times: &mut Histogram<u64>) -> Result<(), Ended> {
        while self.awaited > 0 {
            let Self { wires, echo, have, .. } = self;
            let into = echo.get_mut(*have..).unwrap_or_default();
            match calls::receive(wires.receiving(), into, Wait::Not) {
                Ok(0) if self.is_stream => return Err(Ended::Closed),
                Ok(bytes) => *have += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.shared.ended(Ended::Failed(error))),
            }
            let now = ArchCounter.now();
            if self.is_stream && self.have < self.echo.len() {
                continue;
            }
            self.have = 0;
            // Late echoes of an earlier round are not awaited any more.
            if let Some(header) = Header::of(&self.echo).filter(|header| header.round == round) {
                self.awaited -= 1;
                times.saturating_record(self.scale.ns(now.saturating_sub(header.due_ticks)));
            }
        }
        Ok(())
    }

    /// Waits a while for the echoes that are on their way.
    fn take_last_echoes(&mut self, round: u32, times: &mut Histogram<u64>) -> Result<(), Ended> {
        let wait = self.scale.hz() / 1_000 * ECHO_TIME_MS_MAX;
        let start = ArchCounter.now();
        while self.awaited > 0 && ArchCounter.now().saturating_sub(start) < wait {
            self.take_echoes(round, times)?;
            hint::spin_loop();
        }
        Ok(())
    }
}
