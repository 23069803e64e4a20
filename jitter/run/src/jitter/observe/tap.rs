//! Passes interruptions and their main causes on while the samplers run.

use super::{observer::Observer, setup::TraceSetup, trace_reader::TraceReader};
use crate::{
    clock::{self, TickScale},
    jitter::{JitterError, JitterOptions, Lane, Started, run::run},
};
use lowlat_host::{CpuId, ticks_between};
use lowlat_host_run::Root;
use lowlat_jitter::{
    Cause, CauseKind,
    attribution::CauseKey,
    watch::{Sampled, SampledCause, SampledCpu},
};
use std::{
    collections::BTreeMap,
    sync::{atomic::AtomicBool, mpsc::Sender},
    time::{Duration, Instant},
};

/// Shortest time between two messages.
const SEND_EVERY: Duration = Duration::from_millis(250);

/// Message that a sampling run sends while it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Live {
    /// Sent once, when the samplers run: why causes are unknown; `None` if the kernel's trace shows them.
    Started(Option<String>),
    /// The interruptions since the last message.
    Interruptions(Sampled),
}

/// Samples the CPUs until `stop` is raised or the time is over, and reports interruptions as they happen. Returns the
/// warnings of the run.
///
/// # Errors
/// [`JitterError`] if the run is impossible; nothing was measured then.
pub fn sample(
    root: &Root,
    options: &JitterOptions,
    stop: &AtomicBool,
    out: &Sender<Live>,
) -> Result<Vec<String>, JitterError> {
    options.check(root)?;
    let (kind, _) = clock::choose(root);
    let mut notes = Vec::new();
    let (setup, reason) = match TraceSetup::start(root, &options.cpus, kind, &mut notes) {
        Ok(setup) => (Some(setup), None),
        Err(reason) => (None, Some(reason)),
    };
    let mut observer = Observer::new(root, options, None, setup);
    observer.tap = Some(Tap::new(out.clone(), reason));
    let record = run(root, options, stop, &|_| (), Some(&mut observer))?;
    if let Some(trace) = observer.trace {
        trace.into_causes(&record, None, &mut notes);
    }
    Ok(notes.iter().map(ToString::to_string).chain(record.warnings).collect())
}

/// Sums of interruptions by CPU and main cause, which are sent several times a second.
#[derive(Debug)]
pub struct Tap {
    out: Sender<Live>,
    /// The first message, until it is sent.
    started: Option<Live>,
    scale: TickScale,
    cpus: Vec<Tally>,
    sent: Instant,
}

#[derive(Debug, Default)]
struct Tally {
    cpu: CpuId,
    sum: Sum,
    by_key: BTreeMap<CauseKey, Sum>,
    /// Losses of the ring, all and those that were sent.
    lost_count: u64,
    lost_sent: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    count: u64,
    ticks_total: u64,
    ticks_max: u64,
}

impl Sum {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.ticks_total = self.ticks_total.saturating_add(ticks);
        self.ticks_max = self.ticks_max.max(ticks);
    }
}

impl Tap {
    /// A tap that sends to `out`; `no_causes` is why causes are unknown.
    pub fn new(out: Sender<Live>, no_causes: Option<String>) -> Self {
        Self {
            out,
            started: Some(Live::Started(no_causes)),
            scale: TickScale::new(1),
            cpus: Vec::new(),
            sent: Instant::now(),
        }
    }

    /// Called before the samplers start.
    pub fn start(&mut self, started: &Started, lanes: &[Lane]) {
        self.scale = started.scale;
        self.cpus = lanes.iter().map(|lane| Tally { cpu: lane.cpu, ..Tally::default() }).collect();
    }

    /// Takes the interruptions of one CPU, and the main causes of the first of them: all, if it is traced.
    pub fn take(&mut self, place: usize, lane: &Lane, spans: &[(u64, u64)], keys: &[CauseKey]) {
        let Some(tally) = self.cpus.get_mut(place) else { return };
        tally.lost_count = lane.ring.lost_count();
        let untraced = std::iter::repeat(CauseKey::Kind(CauseKind::NotTraced));
        for ((before, now), key) in spans.iter().zip(keys.iter().copied().chain(untraced)) {
            let ticks = ticks_between(*before, *now).unwrap_or(0);
            tally.sum.add(ticks);
            tally.by_key.entry(key).or_default().add(ticks);
        }
    }

    /// Sends the sums if it is time.
    pub fn end_round(&mut self, trace: Option<&mut TraceReader>) {
        if let Some(started) = self.started.take() {
            // A receiver that is gone needs no messages.
            let _ = self.out.send(started);
        }
        if self.sent.elapsed() < SEND_EVERY {
            return;
        }
        self.sent = Instant::now();
        if self.cpus.iter().all(Tally::is_empty) {
            return;
        }
        let keys: Vec<CauseKey> = self.cpus.iter().flat_map(|tally| tally.by_key.keys().copied()).collect();
        let causes = match trace {
            Some(trace) => trace.causes_now(&mut keys.iter().copied()),
            None => keys.iter().map(|key| Cause::of(key.kind())).collect(),
        };
        let (scale, mut causes) = (self.scale, causes.into_iter());
        let cpus = self.cpus.iter_mut().map(|tally| tally.send(scale, &mut causes)).collect();
        // A receiver that is gone has ended the run.
        let _ = self.out.send(Live::Interruptions(Sampled { cpus }));
    }
}

impl Tally {
    fn is_empty(&self) -> bool {
        self.sum.count == 0 && self.lost_count == self.lost_sent
    }

    /// The sums since the last call; `causes` are those of its keys, in their order.
    fn send(&mut self, scale: TickScale, causes: &mut impl Iterator<Item = Cause>) -> SampledCpu {
        let mut sent = SampledCpu {
            cpu: self.cpu,
            count: self.sum.count,
            ns_total: scale.ns(self.sum.ticks_total),
            ns_max: scale.ns(self.sum.ticks_max),
            lost_count: self.lost_count.saturating_sub(self.lost_sent),
            ..SampledCpu::default()
        };
        for (sum, cause) in self.by_key.values().zip(causes) {
            // Two keys may have the same name; then their sums belong together.
            let (ns_total, ns_max) = (scale.ns(sum.ticks_total), scale.ns(sum.ticks_max));
            let one = SampledCause { cause, count: sum.count, ns_total, ns_max };
            sent.add(SampledCpu { causes: vec![one], ..SampledCpu::default() });
        }
        self.by_key.clear();
        (self.sum, self.lost_sent) = (Sum::default(), self.lost_count);
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::DURATION_MAX;
    use lowlat_host::CpuSet;
    use lowlat_host_run::affinity;
    use std::{
        sync::{atomic::Ordering, mpsc},
        thread,
    };

    #[test]
    fn interruptions_arrive_while_the_samplers_run() {
        let cpu = affinity::current().unwrap().highest().unwrap();
        let options =
            JitterOptions { threshold_ns: Some(100), ..JitterOptions::new(CpuSet::of(cpu), DURATION_MAX) };
        let (root, stop) = (Root::live(), AtomicBool::new(false));
        let (out, live) = mpsc::channel();
        let sampled = thread::scope(|scope| {
            let run = scope.spawn(|| sample(&root, &options, &stop, &out));
            assert!(matches!(live.recv().unwrap(), Live::Started(_)));
            // A run of a year sends its first message long before its end.
            let first = live.recv().unwrap();
            stop.store(true, Ordering::Relaxed);
            run.join().unwrap().unwrap();
            first
        });
        let Live::Interruptions(sampled) = sampled else { panic!("{sampled:?}") };
        let [one] = &sampled.cpus[..] else { panic!("{sampled:?}") };
        assert!(one.cpu == cpu && one.count > 0 && one.ns_max >= 100, "{one:?}");
        let causes: u64 = one.causes.iter().map(|cause| cause.count).sum();
        assert_eq!(causes, one.count, "each interruption has one main cause");
    }
}
