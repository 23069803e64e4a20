//! Rounds with time stamps.

use super::{
    super::{
        control::{ControlError, unexpected},
        link::Ended,
        parts::{PartsRun, Thread},
    },
    ANSWER_TIME_MAX, PingError, Pinger,
};
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter};
use lowlat_net::{
    pingpong::{
        parts::Stamps,
        protocol::{Message, STAMPS_PER_FRAME},
    },
    whole,
};
use std::hint;

impl Pinger<'_> {
    /// Starts the parts of a size, once the warm-up has shown the threads.
    pub(super) fn begin_parts(&mut self) {
        if let Some(parts) = &mut self.parts {
            let id = Some(rustix::thread::gettid().as_raw_nonzero().get());
            let client = Thread { id, incoming_cpu: self.link.incoming_cpu(), ..Thread::default() };
            parts.begin_size(ArchCounter.now(), client, self.server, self.link.napi_id());
        }
    }

    /// As [`Pinger::run_batch`], with time stamps at both ends. Its round trips are no samples.
    pub(super) fn run_stamped_batch(&mut self, size_bytes: u32, count: u64) -> Result<(), PingError> {
        self.announce(size_bytes, count, true)?;
        self.link.start_stamps(count + 1, size_bytes).map_err(Ended::Failed)?;
        let bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
        let batch = self.batch;
        let passed = batch.during(size_bytes, || self.stamped_loop(bytes, count));
        self.parts.iter_mut().for_each(PartsRun::end_batch);
        let client = self.link.end_stamps().map_err(Ended::Failed)?;
        if self.has_lost(passed)? {
            return self.done_late();
        }
        let server = self.server_stamps(count + 1)?;
        self.parts.iter_mut().for_each(|parts| parts.join(&client, &server));
        self.done()
    }

    fn stamped_loop(&mut self, bytes: usize, count: u64) -> Result<(), Ended> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        parts.begin_batch();
        self.link.stamped_round_trip(bytes)?;
        self.link.read_departures();
        let interval = self.scenario.rate_per_s.map_or(0.0, |rate| self.scale.hz() as f64 / rate);
        let first = ArchCounter.now();
        for place in 0..count {
            let due = first.wrapping_add(whole(interval * (place + 1) as f64));
            self.link.clear(bytes);
            let mut start = ArchCounter.now();
            while start < due {
                hint::spin_loop();
                start = ArchCounter.now();
            }
            let end = self.link.stamped_round_trip(bytes)?;
            parts.push(start, end);
            self.link.read_departures();
        }
        Ok(())
    }

    /// Receives the server's rows of a batch: exactly so many.
    fn server_stamps(&self, count: u64) -> Result<Vec<Stamps>, ControlError> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut all: Vec<Stamps> = Vec::new();
        while all.len() < count {
            match self.control.receive(ANSWER_TIME_MAX)? {
                Message::Stamps { rows }
                    if !rows.is_empty() && rows.len() <= STAMPS_PER_FRAME.min(count - all.len()) =>
                {
                    all.extend(rows);
                }
                Message::Stamps { rows } => {
                    let wrong =
                        format!("{} time stamps instead of at most {}", rows.len(), count - all.len());
                    return Err(ControlError::Unexpected(wrong));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }
}
