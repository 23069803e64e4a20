//! Runs beside the samplers and takes every interruption from the rings, once.

use super::{setup::Halt, setup::TraceSetup, tap::Tap, trace_reader::TraceReader};
use crate::jitter::{Companion, JitterOptions, Lane, RawFiles, Started, ring::CAPACITY_MAX};
use lowlat_host_run::Root;
use lowlat_jitter::attribution::CauseKey;

/// Streams interruptions to disk and matches them with the trace, as requested.
#[derive(Debug)]
pub struct Observer<'a> {
    root: &'a Root,
    options: &'a JitterOptions,
    pub raw: Option<RawFiles>,
    setup: Option<TraceSetup>,
    /// `None` if there was no trace or the run did not start.
    pub trace: Option<TraceReader>,
    /// Passes interruptions on during the run.
    pub tap: Option<Tap>,
    /// Ends the run at a long interruption.
    pub halt: Option<Halt<'a>>,
    /// Interruptions of one CPU in one round.
    spans: Vec<(u64, u64)>,
    /// Their main causes, as far as they are traced.
    keys: Vec<CauseKey>,
}

impl<'a> Observer<'a> {
    /// An observer with preallocated memory.
    pub fn new(
        root: &'a Root,
        options: &'a JitterOptions,
        raw: Option<RawFiles>,
        setup: Option<TraceSetup>,
    ) -> Self {
        let (spans, keys) = (Vec::with_capacity(CAPACITY_MAX), Vec::with_capacity(CAPACITY_MAX));
        Self { root, options, raw, setup, trace: None, tap: None, halt: None, spans, keys }
    }
}

impl Companion for Observer<'_> {
    fn start(&mut self, started: &Started, lanes: &[Lane]) {
        let setup = self.setup.take();
        if let Some(tap) = &mut self.tap {
            tap.start(started, lanes);
        }
        self.halt.iter_mut().for_each(|halt| halt.scale = started.scale);
        self.trace = setup.map(|setup| TraceReader::start(setup, self.root, self.options, started, lanes));
    }

    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]) {
        // Interruptions after this wait for the next round, when all that could cause them has been read.
        let until = self.trace.as_mut().map_or(u64::MAX, |trace| trace.read_senders(epoch));
        for (place, lane) in lanes.iter_mut().enumerate() {
            self.spans.clear();
            self.keys.clear();
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
                trace.take(place, lane, spans, looked_at, &mut self.keys);
            }
            if let Some(halt) = &mut self.halt
                && halt.take(lane.cpu, spans, &self.keys)
                && let Some(trace) = &mut self.trace
            {
                trace.end_keeping();
            }
            if let Some(tap) = &mut self.tap {
                tap.take(place, lane, spans, &self.keys);
            }
        }
        if let Some(trace) = &mut self.trace {
            trace.end_round();
        }
        if let Some(tap) = &mut self.tap {
            tap.end_round(self.trace.as_mut());
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
