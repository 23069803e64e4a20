//! Lost datagrams: counted while they are few, and the end of the run when they are not.

use super::{
    alone, check_warnings, short,
    veth::{ADDRESSES, INTERFACE, Pair, ip, pair},
};
use lowlat_net::pingpong::{PingpongRecord, Scenario, Transport, Waiting};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Measures while everything from the client to the server is lost again and again for a while, as with a wrong address
/// of the server's card. Waits so long before each loss.
fn interrupted(pair: &Pair, scenario: Scenario, pause: Duration, length: Duration) -> PingpongRecord {
    let is_over = AtomicBool::new(false);
    let neighbour = ["neigh", "replace", ADDRESSES[1], "lladdr", "02:00:00:00:00:01", "dev", INTERFACE];
    let lose = || {
        ip(&[&["-n", &pair.names[0]][..], &neighbour, &["nud", "permanent"]].concat()).unwrap();
        thread::sleep(length);
        ip(&["-n", &pair.names[0], "neigh", "del", ADDRESSES[1], "dev", INTERFACE]).unwrap();
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(pause);
            // Bounded, so that a failed measurement ends the test. Relaxed: only ends the loop.
            for _ in (0..100).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                lose();
                thread::sleep(pause);
            }
        });
        let record = pair.measure(scenario);
        is_over.store(true, Ordering::Relaxed);
        record
    })
}

fn scenario(waiting: Waiting, has_parts: bool) -> Scenario {
    Scenario {
        sizes: vec![0, 32],
        timeout_ms: 300,
        time_ms_max: 1_200,
        iterations_max: 1_000_000,
        waiting,
        has_parts,
        ..short(Transport::Udp)
    }
}

#[test]
fn lost_datagrams_are_counted_and_the_run_continues() {
    let _alone = alone();
    let Some(pair) = pair("lost_datagrams_are_counted_and_the_run_continues") else { return };
    for (waiting, has_parts) in [(Waiting::Block, false), (Waiting::Block, true), (Waiting::Spin, false)] {
        if waiting.spins() && thread::available_parallelism().map_or(1, usize::from) < 2 {
            eprintln!("skipped: spin: one CPU");
            continue;
        }
        let (pause, length) = (Duration::from_millis(500), Duration::from_millis(150));
        let record = interrupted(&pair, scenario(waiting, has_parts), pause, length);
        check_warnings(&record);
        let lost: Vec<u64> = record.sizes.iter().map(|size| size.lost_count).collect();
        eprintln!("{waiting}, parts: {has_parts}: lost {lost:?}");
        assert!(lost.len() == 2 && lost.iter().sum::<u64>() > 0, "{lost:?}");
        for size in &record.sizes {
            assert!(size.figures.iterations >= record.scenario.iterations_min);
        }
    }
}

#[test]
fn a_path_that_stays_broken_ends_the_run_with_a_sentence() {
    let _alone = alone();
    let Some(pair) = pair("a_path_that_stays_broken_ends_the_run_with_a_sentence") else { return };
    let endless = Scenario { time_ms_max: 60_000, ..scenario(Waiting::Block, false) };
    let record = interrupted(&pair, endless, Duration::from_secs(1), Duration::from_secs(4));
    let is_said = |warning: &String| warning.contains("No answer came within 0.3 s");
    assert!(record.warnings.iter().any(is_said), "{:?}", record.warnings);
}

#[test]
fn many_losses_end_the_run_with_a_sentence() {
    let _alone = alone();
    let Some(pair) = pair("many_losses_end_the_run_with_a_sentence") else { return };
    let rate_per_s = Some(500.0);
    // Much longer than an answer takes on a busy machine: only what the test loses is lost.
    let endless =
        Scenario { time_ms_max: 60_000, timeout_ms: 200, rate_per_s, ..scenario(Waiting::Block, false) };
    let record = interrupted(&pair, endless, Duration::from_millis(100), Duration::from_millis(30));
    let is_said = |warning: &String| warning.contains("more than 20 messages were lost");
    assert!(record.warnings.iter().any(is_said), "{:?}", record.warnings);
}
