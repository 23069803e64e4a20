//! Taking a CPU for a known time, and noting when.

use lowlat_host::TickScale;
use lowlat_measure::clock::{self, ArchCounter, Counter};
use lowlat_sys::Root;
use std::sync::OnceLock;

/// Two readings closer together than this lie in code of the spin itself: no kernel enters, does something and leaves
/// in less.
const OWN_NS_MAX: u64 = 250;
/// Somebody who takes the CPU for as long as this may have given it to the sampler; what follows is another spin.
const BREAK_NS: u64 = 20_000;

/// A time in which the sampler can't have run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spin {
    /// The counter at its begin.
    pub from: u64,
    /// The counter at its end.
    pub to: u64,
    /// Ticks of it that were its own: readings lay close together.
    pub own: u64,
}

/// Spins by the counter that the samplers read.
#[derive(Debug, Clone, Copy)]
pub struct Spinner {
    scale: TickScale,
    own_ticks_max: u64,
    break_ticks: u64,
}

impl Spinner {
    /// The one of this host.
    pub fn of_host() -> Self {
        // Measuring it takes a while where nobody names it.
        static HZ: OnceLock<u64> = OnceLock::new();
        let hz = *HZ.get_or_init(|| clock::frequency_of(ArchCounter::KIND, &Root::live()).unwrap().hz);
        let scale = TickScale::new(hz);
        Self { scale, own_ticks_max: scale.ticks(OWN_NS_MAX), break_ticks: scale.ticks(BREAK_NS) }
    }

    /// Spins for so long on end. Allocates nothing and calls nothing, so a handler of a signal may do it.
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
