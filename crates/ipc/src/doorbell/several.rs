//! A thread that waits for several bells.

use super::{AtomicU32, Bell, GRACE, Ordering, PARKED, ParkSeveral, RUNNING, Waited, fence};
use std::time::{Duration, Instant};

/// Bells that one thread waits for at most: what futex_waitv(2) takes.
pub const SEVERAL_MAX: usize = 128;

/// Subscriber: sleeps until a publisher rings one of the bells or `longest` is over, unless `is_ready` says that there is
/// something for one of them. It is [`Bell::wait`] for several: all are parked, then one fence, then the look. Bells
/// beyond [`SEVERAL_MAX`] are not waited for. Each is to belong to this thread alone.
pub fn wait_several(
    bells: &[&Bell],
    park: &impl ParkSeveral,
    longest: Duration,
    mut is_ready: impl FnMut() -> bool,
) -> Waited {
    let bells = bells.get(..SEVERAL_MAX).unwrap_or(bells);
    for bell in bells {
        bell.state.store(PARKED, Ordering::Relaxed);
    }
    // Pairs with the fence in `Bell::ring`.
    fence(Ordering::SeqCst);
    if is_ready() {
        for bell in bells {
            bell.state.store(RUNNING, Ordering::Relaxed);
        }
        return Waited::Ready;
    }
    sleep(bells, park, longest);
    let is_late = are_parked(bells) && is_ready();
    if is_late {
        // As in `Bell::wait`.
        sleep(bells, park, GRACE);
    }
    // Pairs with the exchange in `Bell::claim`. Every bell is taken out of its sleep, so no early end of the look here.
    let woken = bells.iter().filter(|bell| bell.state.swap(RUNNING, Ordering::AcqRel) == RUNNING).count();
    if woken > 0 {
        return Waited::Woken;
    }
    if !is_late {
        return Waited::TimedOut;
    }
    if let Some(first) = bells.first() {
        first.missed.fetch_add(1, Ordering::Relaxed);
    }
    Waited::Ready
}

fn are_parked(bells: &[&Bell]) -> bool {
    bells.iter().all(|bell| bell.state.load(Ordering::Relaxed) == PARKED)
}

fn sleep(bells: &[&Bell], park: &impl ParkSeveral, longest: Duration) {
    let Some(first) = bells.first() else { return };
    let mut words: [&AtomicU32; SEVERAL_MAX] = [&first.state; SEVERAL_MAX];
    words.iter_mut().zip(bells).for_each(|(word, bell)| *word = &bell.state);
    let words = words.get(..bells.len()).unwrap_or_default();
    let start = Instant::now();
    let mut rest = longest;
    while !rest.is_zero() && are_parked(bells) {
        park.sleep_several(words, PARKED, rest);
        rest = longest.saturating_sub(start.elapsed());
    }
}
