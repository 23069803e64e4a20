//! futex(2) for threads of shuttle. Without timeouts: a lost wake causes a deadlock, which shuttle reports.

use super::{Futex, Park};
use crate::atomics::{AtomicU32, Ordering};
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

shuttle::lazy_static! {
    /// Sleepers, present or past, by the address of the word. New for each schedule.
    static ref SLEEPERS: Mutex<BTreeMap<usize, Arc<Condvar>>> = Mutex::new(BTreeMap::new());
}

fn sleepers() -> MutexGuard<'static, BTreeMap<usize, Arc<Condvar>>> {
    SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Park for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, _: Duration) {
        let mut sleepers = sleepers();
        // Under the lock, as in the kernel: no wake can happen between this check and the sleep.
        if word.load(Ordering::Relaxed) == value {
            let place =
                sleepers.entry(std::ptr::from_ref(word).addr()).or_insert_with(|| Arc::new(Condvar::new()));
            let place = Arc::clone(place);
            drop(place.wait(sleepers));
        }
    }

    fn wake(&self, word: &AtomicU32) {
        if let Some(place) = sleepers().get(&std::ptr::from_ref(word).addr()) {
            place.notify_one();
        }
    }
}
