//! Takes a CPU for a known time, and notes when.

use lowlat_host::TickScale;
use lowlat_host_run::Root;
use lowlat_jitter_run::clock::{self, ArchCounter, MonotonicCounter};
use std::sync::OnceLock;

/// Two readings closer together than this are in the code of the spin itself: no kernel entry and exit is
/// shorter.
const OWN_NS_MAX: u64 = 250;
/// A gap of this length may have given the CPU to the sampler; what follows is another spin.
const BREAK_NS: u64 = 20_000;

/// A time in which the sampler cannot have run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin {
    /// The counter at its start.
    pub from: u64,
    /// The counter at its end.
    pub to: u64,
    /// Its ticks during which readings were close together.
    pub own: u64,
}

/// Spins according to the samplers' counter.
#[derive(Debug, Clone, Copy)]
pub struct Spinner {
    scale: TickScale,
    own_ticks_max: u64,
    break_ticks: u64,
}

impl Spinner {
    /// The one of this host.
    pub fn of_host() -> Self {
        // Measuring it takes a while if no source reports it.
        static HZ: OnceLock<u64> = OnceLock::new();
        let hz = *HZ.get_or_init(|| clock::frequency_of(ArchCounter::KIND, &Root::live()).unwrap().hz);
        let scale = TickScale::new(hz);
        Self { scale, own_ticks_max: scale.ticks(OWN_NS_MAX), break_ticks: scale.ticks(BREAK_NS) }
    }

    /// Spins continuously for this long. Allocates nothing and makes no calls, so a signal handler may use it.
    pub fn spin(&self, ns: u64, mut each: impl FnMut(Spin)) {
        let (ticks, began) = (self.scale.ticks(ns), ArchCounter.now());
        let (mut last, mut spin) = (began, Spin { from: began, to: began, own: 0 });
        while last.wrapping_sub(began) < ticks {
            let now = ArchCounter.now();
            let gap = now.wrapping_sub(last);
            if gap >= self.break_ticks {
                each(spin);
                spin = Spin { from: now, to: now, own: 0 };
            } else if gap <= self.own_ticks_max {
                spin.own += gap;
            }
            (last, spin.to) = (now, now);
        }
        each(spin);
    }
}
