//! futex(2) among the threads of shuttle. Nobody wakes by himself: a wake that is lost ends in a deadlock, which shuttle
//! reports.

use super::{Futex, Park};
use crate::atomics::{AtomicU32, Ordering};
use shuttle::sync::{Condvar, Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

shuttle::lazy_static! {
    /// Where somebody sleeps, or slept, by the address of the word. Made anew for each schedule.
    static ref SLEEPERS: Mutex<BTreeMap<usize, Arc<Condvar>>> = Mutex::new(BTreeMap::new());
}

fn sleepers() -> MutexGuard<'static, BTreeMap<usize, Arc<Condvar>>> {
    SLEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Park for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, _: Duration) {
        let mut sleepers = sleepers();
        // With the lock, as in the kernel: between this look and the sleep there is no wake.
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
