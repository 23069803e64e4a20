//! Sleeping on a word, and waking who sleeps there.

use crate::atomics::AtomicU32;
use std::time::Duration;

/// A way to sleep.
pub trait Park {
    /// Sleeps while `word` has `value`, `longest` at most. May return early.
    fn sleep(&self, word: &AtomicU32, value: u32, longest: Duration);

    /// Wakes one that sleeps on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// A way to sleep on several words.
pub trait ParkSeveral: Park {
    /// Sleeps while each of `words` has `value`, `longest` at most. May return early.
    fn sleep_several(&self, words: &[&AtomicU32], value: u32, longest: Duration);
}

/// futex(2), over memory that processes share.
#[derive(Debug, Clone, Copy, Default)]
pub struct Futex;

#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
impl Park for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, longest: Duration) {
        use rustix::thread::futex::{Flags, Timespec, wait};
        let timeout = Timespec {
            tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(longest.subsec_nanos()),
        };
        // Every way to return is one to look again: woken, changed before, a signal, the time over.
        let _ = wait(word, Flags::empty(), value, Some(&timeout));
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::empty(), 1);
    }
}

#[cfg(not(any(lowlat_loom, lowlat_shuttle)))]
mod several {
    use super::{AtomicU32, Duration, Futex, Park, ParkSeveral};
    use rustix::{
        io::Errno,
        thread::futex::{ClockId, Timespec, Wait, WaitFlags, WaitPtr, WaitvFlags, waitv},
    };
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The kernel was asked for futex_waitv(2) and does not know it.
    static HAS_NO_WAITV: AtomicBool = AtomicBool::new(false);

    /// How long a sleep on one of several words is where the kernel knows no other: what comes on another word is found
    /// as much later at worst.
    const SLICE: Duration = Duration::from_micros(500);

    impl ParkSeveral for Futex {
        /// With futex_waitv(2), since Linux 5.16. Older kernels, and filters of system calls that do not know it, sleep on
        /// the first word, in slices.
        fn sleep_several(&self, words: &[&AtomicU32], value: u32, longest: Duration) {
            let Some(first) = words.first() else { return };
            let mut waits = [Wait::new(); super::super::SEVERAL_MAX];
            for (wait, word) in waits.iter_mut().zip(words) {
                wait.val = u64::from(value);
                wait.uaddr = WaitPtr::new(std::ptr::from_ref(*word).cast_mut().cast());
                wait.flags = WaitFlags::SIZE_U32;
            }
            let all = waits.get(..words.len()).filter(|_| !HAS_NO_WAITV.load(Ordering::Relaxed));
            let answer =
                all.map(|all| waitv(all, WaitvFlags::empty(), until(longest).as_ref(), ClockId::Monotonic));
            match answer {
                Some(Err(Errno::NOSYS | Errno::PERM)) => HAS_NO_WAITV.store(true, Ordering::Relaxed),
                // Every way to return is one to look again.
                Some(_) => return,
                None => {}
            }
            self.sleep(first, value, longest.min(SLICE));
        }
    }

    /// The time of the monotonic clock so much later; none when that is beyond what it counts.
    fn until(longest: Duration) -> Option<Timespec> {
        let now = rustix::time::clock_gettime(ClockId::Monotonic);
        let nanoseconds = now.tv_nsec + i64::from(longest.subsec_nanos());
        let seconds = i64::try_from(longest.as_secs()).ok()?.checked_add(now.tv_sec)?;
        let tv_sec = seconds.checked_add(nanoseconds / 1_000_000_000)?;
        Some(Timespec { tv_sec, tv_nsec: nanoseconds % 1_000_000_000 })
    }

    #[cfg(test)]
    #[test]
    fn without_waitv_it_sleeps_in_slices() {
        let (one, other) = (AtomicU32::new(1), AtomicU32::new(1));
        let start = std::time::Instant::now();
        // The flag only ever costs other tests of this process some latency.
        HAS_NO_WAITV.store(true, Ordering::Relaxed);
        Futex.sleep_several(&[&one, &other], 1, Duration::from_secs(600));
        HAS_NO_WAITV.store(false, Ordering::Relaxed);
        assert!(start.elapsed() < Duration::from_secs(600), "one slice, not all of it");
        let start = std::time::Instant::now();
        Futex.sleep_several(&[&one, &other], 1, Duration::from_millis(3));
        assert!(start.elapsed() >= Duration::from_millis(3) || HAS_NO_WAITV.load(Ordering::Relaxed));
        Futex.sleep_several(&[&one, &AtomicU32::new(0)], 1, Duration::from_secs(600));
        assert_eq!(until(Duration::MAX), None);
    }
}
