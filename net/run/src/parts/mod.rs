//! The client's side of parts: joins the stamps of both ends, the counter and the kernel's trace, batch by batch.

mod causes;
mod tracer;

use super::stamps;
use lowlat_host::CpuId;
use lowlat_host_run::Root;
use lowlat_jitter_run::clock::TickScale;
use lowlat_net::{
    pingpong::{
        PingpongRecord,
        parts::{PartsFacts, RoundTrip, SizeParts, Stamps, Tally, Wakes},
        protocol::STAMPED_BATCH_MAX,
    },
    unique,
};
use tracer::{Moment, Tracer};

/// Most round trips of a batch with time stamps: few enough that its trace fits into the kernel's buffers.
const BATCH_MAX: u64 = STAMPED_BATCH_MAX / 2;

/// One end, for the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thread {
    /// CPU that the thread is pinned to.
    pub cpu: Option<CpuId>,
    /// Thread id in the kernel, once known.
    pub id: Option<i32>,
    /// CPU on which its packets arrive, once known.
    pub incoming_cpu: Option<CpuId>,
}

/// The parts of a run.
#[derive(Debug)]
pub struct PartsRun<'a> {
    root: &'a Root,
    scale: TickScale,
    is_same_host: bool,
    client: Thread,
    server: Thread,
    /// The trace, if there is one.
    tracer: Option<Tracer>,
    /// A trace was set up, or found to be impossible.
    is_set_up: bool,
    facts: PartsFacts,
    tally: Tally,
    /// Counter at the start of the size.
    epoch: u64,
    /// Counter before and after each round trip of the batch.
    times: Vec<(u64, u64)>,
}

impl<'a> PartsRun<'a> {
    /// For a run whose ends are known. `root` is the running host.
    pub fn new(root: &'a Root, scale: TickScale, record: &PingpongRecord) -> Self {
        let thread = |cpu| Thread { cpu, ..Thread::default() };
        Self {
            root,
            scale,
            is_same_host: record.is_same_host,
            client: thread(record.scenario.client_cpu),
            server: thread(record.scenario.server_cpu),
            tracer: None,
            is_set_up: false,
            facts: PartsFacts::default(),
            tally: Tally::new([false; 2]),
            epoch: 0,
            times: Vec::with_capacity(usize::try_from(STAMPED_BATCH_MAX).unwrap_or_default()),
        }
    }

    /// Round trips of a batch: as many as are due within about a second.
    pub fn batch_count(rate_per_s: Option<f64>) -> u64 {
        let is_due = |count: &u64| rate_per_s.is_none_or(|rate| *count as f64 <= rate);
        (2..=BATCH_MAX).rev().find(is_due).unwrap_or(1)
    }

    /// Starts a size, with the threads that the warm-up has shown. The first one sets the trace up, which disturbs
    /// every CPU.
    pub fn begin_size(&mut self, epoch: u64, client: Thread, server: Thread, napi_id: Option<u32>) {
        let with = |end: Thread, new: Thread| Thread { cpu: end.cpu, ..new };
        (self.client, self.server) = (with(self.client, client), with(self.server, server));
        if !std::mem::replace(&mut self.is_set_up, true) {
            self.tracer = self.set_up();
            self.facts.notes.push(stamps::sentence(napi_id));
            let is_traced = self.tracer.is_some();
            self.facts.is_traced = [is_traced, is_traced && self.is_same_host];
        }
        self.epoch = epoch;
        self.tally = Tally::new(self.facts.is_traced);
        self.tracer.iter_mut().for_each(|tracer| tracer.begin_size(epoch));
    }

    fn set_up(&mut self) -> Option<Tracer> {
        let server = self.is_same_host.then_some(self.server);
        if !self.is_same_host {
            self.facts.notes.push(
                "The server's host is not traced: only this host's wake-ups and causes are known.".into(),
            );
        }
        if self.client.cpu.is_none() || server.is_some_and(|server| server.cpu.is_none()) {
            self.facts.notes.push("An end is not pinned to a CPU, so nothing is traced.".into());
            return None;
        }
        match Tracer::start(self.root, self.scale, self.client, server, &mut self.facts.notes) {
            Ok(tracer) => Some(tracer),
            Err(why) => {
                let why = why.split('\n').next().unwrap_or_default();
                self.facts.notes.push(format!("Wake-ups and causes are unknown: {why}."));
                None
            }
        }
    }

    /// Starts a batch: right before its first message.
    pub fn begin_batch(&mut self) {
        self.times.clear();
        self.tracer.iter_mut().for_each(Tracer::switch_on);
    }

    /// Adds the counter before and after a round trip.
    pub fn push(&mut self, start: u64, end: u64) {
        if self.times.len() < self.times.capacity() {
            self.times.push((start, end));
        }
    }

    /// Ends a batch: right after its last message.
    pub fn end_batch(&mut self) {
        self.tracer.iter_mut().for_each(Tracer::switch_off);
    }

    /// Joins the rows of both ends with the counter. The first row of each is that of the round trip that woke both
    /// ends up.
    pub fn join(&mut self, client: &[Stamps], server: &[Stamps]) {
        let rows = client.iter().zip(server).skip(1);
        for ((start, end), (client, server)) in self.times.iter().zip(rows) {
            let (start, end) = (*start, *end);
            let [client_wake, server_wake] = match &mut self.tracer {
                Some(tracer) => {
                    tracer.attribute(start, end);
                    let moment = Moment { start, real_ns: client.sending_ns };
                    [tracer.wake(0, moment, client), tracer.wake(1, moment, server)]
                }
                _ => [Wakes::Unknown; 2],
            };
            self.tally.add(RoundTrip {
                at_ns: self.scale.ns(start.saturating_sub(self.epoch)),
                measured_ns: self.scale.ns(end.saturating_sub(start)),
                client: *client,
                server: *server,
                client_wake,
                server_wake,
            });
        }
    }

    /// Ends a size. Returns its parts.
    pub fn end_size(&mut self) -> SizeParts {
        let notes = &mut self.facts.notes;
        let causes = self.tracer.as_mut().map_or_else(Vec::new, |tracer| tracer.end_size(notes));
        let ends = causes::Ends {
            client_cpu: self.client.cpu,
            server_cpu: self.server.cpu,
            is_same_host: self.is_same_host,
        };
        self.facts.is_by_nics |= self.tally.is_by_nics() == Some(true);
        SizeParts { slowest: causes::slowest(&self.tally, &causes, &ends), ..self.tally.figures() }
    }

    /// Returns how the parts were found. Removes the trace.
    pub fn finish(mut self) -> PartsFacts {
        self.facts.notes.extend(self.tracer.and_then(Tracer::finish));
        PartsFacts { notes: unique(self.facts.notes), ..self.facts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_lasts_about_a_second_at_any_rate() {
        let of = |rate| PartsRun::batch_count(rate);
        assert_eq!([of(None), of(Some(1e6)), of(Some(10.0)), of(Some(0.1))], [BATCH_MAX, BATCH_MAX, 10, 1]);
    }
}
