//! Runs beside the samplers and takes every interruption from the rings, once.

use super::{setup::Setup, trace_reader::TraceReader};
use crate::jitter::{Companion, JitterOptions, Lane, RawFiles, Started, ring::CAPACITY_MAX};
use lowlat_sys::Root;

/// Streams interruptions to disk and matches them with the trace, as requested.
#[derive(Debug)]
pub struct Observer<'a> {
    root: &'a Root,
    options: &'a JitterOptions,
    raw: Option<RawFiles>,
    setup: Option<Setup>,
    trace: Option<TraceReader>,
    /// Interruptions of one CPU in one round.
    spans: Vec<(u64, u64)>,
}

impl<'a> Observer<'a> {
    /// An observer with preallocated memory.
    pub fn new(
        root: &'a Root,
        options: &'a JitterOptions,
        raw: Option<RawFiles>,
        setup: Option<Setup>,
    ) -> Self {
        let spans = Vec::with_capacity(CAPACITY_MAX);
        Self { root, options, raw, setup, trace: None, spans }
    }

    /// Its results; no reader if there was no trace or the run did not start.
    pub fn into_parts(self) -> (Option<RawFiles>, Option<TraceReader>) {
        (self.raw, self.trace)
    }
}

impl Companion for Observer<'_> {
    fn start(&mut self, started: &Started, lanes: &[Lane]) {
        let setup = self.setup.take();
        self.trace = setup.map(|setup| TraceReader::start(setup, self.root, self.options, started, lanes));
    }

    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]) {
        // Interruptions after this wait for the next round, when all that could cause them has been read.
        let until = self.trace.as_mut().map_or(u64::MAX, |trace| trace.read_senders(epoch));
        for (place, lane) in lanes.iter_mut().enumerate() {
            self.spans.clear();
            let (spans, raw) = (&mut self.spans, &mut self.raw);
            // Before the ring is read: later interruptions may be missing in it.
            let looked_at = self.trace.as_ref().map_or(0, TraceReader::now);
            lane.ring.drain_until(until, |before, now| {
                if let Some(raw) = raw {
                    raw.push(place, before, now);
                }
                spans.push((before, now));
            });
            if let Some(trace) = &mut self.trace {
                trace.take(epoch, place, lane, spans, looked_at);
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.end_round();
        }
    }

    fn finish(&mut self, lanes: &[Lane]) {
        if let Some(raw) = &mut self.raw {
            raw.complete(lanes);
        }
        if let Some(trace) = &mut self.trace {
            trace.stop();
        }
    }
}
