//! Ends a run at the first long interruption.

use crate::{clock::TickScale, jitter::JitterOptions};
use lowlat_host::{CpuId, ticks_between};
use lowlat_jitter::{
    Cause, CauseKind, GroupMember, Interruption, JitterRecord, Stop,
    attribution::{CauseKey, Hit},
};
use std::sync::atomic::{AtomicBool, Ordering};

/// The end of a run by an interruption.
#[derive(Debug)]
pub struct Halt<'a> {
    on_ns: u64,
    /// Set before the samplers start.
    pub scale: TickScale,
    stop: &'a AtomicBool,
    hit: Option<Hit>,
}

impl<'a> Halt<'a> {
    /// Raises `stop` at an interruption that is long enough; `None` if none is to end the run.
    pub fn of(options: &JitterOptions, stop: &'a AtomicBool) -> Option<Self> {
        Some(Self { on_ns: options.stop_on_ns?, scale: TickScale::NANOSECONDS, stop, hit: None })
    }

    /// Inspects interruptions of a CPU, in order of time, with the main causes of those that are traced. Returns true if one
    /// is long enough.
    pub fn take(&mut self, cpu: CpuId, spans: &[(u64, u64)], keys: &[CauseKey]) -> bool {
        let ns = |(before, now): &(u64, u64)| self.scale.ns(ticks_between(*before, *now).unwrap_or(0));
        let not_traced = std::iter::repeat(&CauseKey::Kind(CauseKind::NotTraced));
        let mut all = spans.iter().zip(keys.iter().chain(not_traced));
        let Some(((before, now), key)) = all.find(|(span, _)| ns(span) >= self.on_ns) else { return false };
        // Several CPUs may have one in the same round: the first to end counts.
        if self.hit.is_none_or(|first| *now < first.now) {
            self.hit = Some(Hit { cpu, before: *before, now: *now, key: *key });
        }
        // Relaxed: pairs with the samplers' Relaxed loads; a lone flag that orders no data.
        self.stop.store(true, Ordering::Relaxed);
        true
    }

    /// The interruption, if there was one, and how the run ended.
    pub fn finish(&self, record: &JitterRecord) -> (Option<Hit>, Stop) {
        let ns = |from, to| self.scale.ns(ticks_between(from, to).unwrap_or(0));
        let member = |hit: Hit| {
            let (at_ns, length_ns) = (ns(record.start_ticks, hit.before), ns(hit.before, hit.now));
            let interruption = Interruption { at_ns, length_ns };
            GroupMember { cpu: hit.cpu, interruption, cause: Cause::of(hit.key.kind()) }
        };
        (self.hit, Stop { on_ns: self.on_ns, hit: self.hit.map(member), ..Stop::default() })
    }
}
