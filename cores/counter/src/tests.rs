use super::*;
use std::{
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

const THREADS: usize = 8;
const ADDITIONS: i64 = 200_000;

/// Moves this thread to one of its CPUs.
fn move_to(cpus: &[usize], turn: usize) {
    let cpu = cpus[turn % cpus.len()];
    // SAFETY: an all-zero set is valid; CPU_SET writes only into it; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero set is valid; the call writes at most its size into it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    // SAFETY: CPU_ISSET reads the set, and the number is below its size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

#[test]
fn threads_that_are_moved_and_preempted_lose_nothing() {
    let counter = PerCpuCounter::with_batch(100);
    let cpus = allowed();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (counter, cpus) = (&counter, &cpus);
            scope.spawn(move || {
                for turn in 0..ADDITIONS {
                    if turn % 1_000 == 0 {
                        move_to(cpus, thread + usize::try_from(turn).unwrap() / 1_000);
                    }
                    counter.add(3);
                    counter.add_local(1);
                    counter.sub_local(2);
                }
            });
        }
    });
    let expected = 2 * ADDITIONS * i64::try_from(THREADS).unwrap();
    assert_eq!(counter.sum(), expected);
}

#[test]
fn additions_under_signals_are_whole() {
    extern "C" fn ignore(_: i32) {}
    // SAFETY: the handler does nothing, which is safe at any time.
    unsafe { libc::signal(libc::SIGUSR2, ignore as *const () as libc::sighandler_t) };
    let counter = PerCpuCounter::new();
    let is_done = AtomicBool::new(false);
    let added = thread::scope(|scope| {
        let (sender, numbers) = std::sync::mpsc::channel();
        let (counter, is_done) = (&counter, &is_done);
        let adding = scope.spawn(move || {
            // A pointer or a number, by library.
            #[allow(clippy::cast_possible_truncation, reason = "both have the size of a pointer")]
            // SAFETY: the call has no conditions.
            sender.send(unsafe { libc::pthread_self() } as usize).unwrap();
            let mut added = 0_i64;
            // Relaxed: only ends the loop.
            while !is_done.load(Ordering::Relaxed) {
                counter.add_local(1);
                added += 1;
            }
            added
        });
        let thread = numbers.recv().unwrap();
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            // SAFETY: the thread runs until `is_done`, which is set below.
            unsafe { libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR2) };
        }
        // Relaxed: only ends the loop.
        is_done.store(true, Ordering::Relaxed);
        adding.join().unwrap()
    });
    assert!(added > 0);
    assert_eq!(counter.sum(), added);
}

#[test]
fn shared_parts_count_beside_own_ones() {
    let counter = PerCpuCounter::with_batch(10);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    counter.add_shared(2);
                    counter.add(1);
                }
            });
        }
    });
    assert_eq!(counter.sum(), 120_000);
}

#[test]
fn folding_keeps_the_global_value_near_the_sum() {
    let counter = PerCpuCounter::with_batch(50);
    for _ in 0..1_000 {
        counter.add(7);
    }
    let parts = i64::try_from(counter.own.len() + counter.shared.len()).unwrap();
    assert!((counter.sum() - counter.approximate()).abs() <= 50 * parts);
    assert_eq!(counter.sum(), 7_000);
    counter.sub(7_000);
    assert_eq!(counter.sum(), 0);
}

#[test]
fn a_cpu_without_a_part_and_one_that_is_gone_count() {
    // No parts: every thread falls back.
    let without = PerCpuCounter { own: Box::default(), ..PerCpuCounter::new() };
    without.add(5);
    without.add_local(6);
    assert_eq!(without.sum(), 11);
    // The amount that a CPU had gathered before it went offline stays in its part.
    let counter = PerCpuCounter::new();
    if let Some(part) = counter.own.last() {
        part.value.store(9, Ordering::Relaxed);
        assert_eq!(counter.sum(), 9);
    }
}

#[test]
fn every_thread_is_restartable_where_the_kernel_can() {
    let here = is_restartable();
    eprintln!("restartable sequences: {here}");
    for _ in 0..50 {
        assert_eq!(thread::spawn(is_restartable).join().unwrap(), here);
    }
}
