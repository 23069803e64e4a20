//! Lost datagrams: counted while they are few, and the end of the run when they are not.

use super::{
    check_warnings, short,
    veth::{ADDRESSES, INTERFACE, Pair, inside, ip, pair},
};
use lowlat_net::pingpong::{PingpongRecord, Scenario, Transport, Waiting};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use std::{
    io::Read,
    os::fd::AsRawFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
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
            let begun = Instant::now();
            while !is_over.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(120) {
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
        time_ms_max: 800,
        iterations_max: 1_000_000,
        waiting,
        has_parts,
        ..short(Transport::Udp)
    }
}

#[test]
fn lost_datagrams_are_counted_and_the_run_continues() {
    let Some(pair) = pair("lost_datagrams_are_counted_and_the_run_continues") else { return };
    for (waiting, has_parts) in [(Waiting::Block, false), (Waiting::Block, true), (Waiting::Spin, false)] {
        if waiting.spins() && thread::available_parallelism().map_or(1, usize::from) < 2 {
            eprintln!("skipped: spin: one CPU");
            continue;
        }
        let (pause, length) = (Duration::from_millis(300), Duration::from_millis(100));
        let record = interrupted(&pair, scenario(waiting, has_parts), pause, length);
        check_warnings(&record.warnings);
        let lost: Vec<u64> = record.sizes.iter().map(|size| size.lost_count).collect();
        eprintln!("{waiting}, parts: {has_parts}: lost {lost:?}");
        assert!(lost.len() == 2 && lost.iter().sum::<u64>() > 0, "{lost:?}");
        for size in &record.sizes {
            assert!(size.figures.iterations >= record.scenario.iterations_min);
        }
    }
}

/// A socket that sees and sends every frame of an interface; what it sends itself it does not see.
pub fn tap(interface: &str) -> std::io::Result<Socket> {
    const ETH_P_ALL: u16 = 3;
    const PACKET_QDISC_BYPASS: i32 = 20;
    let tap = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(i32::from(ETH_P_ALL.to_be()))))?;
    let name = std::ffi::CString::new(interface)?;
    // SAFETY: the name ends in a zero and is alive during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    let mut address = SockAddrStorage::zeroed();
    // SAFETY: the storage is large enough for any address, aligned for it, and zeroed, which is a valid `sockaddr_ll`.
    let link = unsafe { address.view_as::<libc::sockaddr_ll>() };
    link.sll_family = u16::try_from(libc::AF_PACKET).unwrap();
    link.sll_protocol = ETH_P_ALL.to_be();
    link.sll_ifindex = index.cast_signed();
    // SAFETY: the storage holds a `sockaddr_ll`, and the length is its size.
    let address = unsafe { SockAddr::new(address, u32::try_from(size_of::<libc::sockaddr_ll>()).unwrap()) };
    tap.bind(&address)?;
    let one: libc::c_int = 1;
    // SAFETY: the value is an int of the given length, alive during the call.
    let set = unsafe {
        let value = (&raw const one).cast();
        libc::setsockopt(tap.as_raw_fd(), libc::SOL_PACKET, PACKET_QDISC_BYPASS, value, 4)
    };
    if set != 0 {
        return Err(std::io::Error::last_os_error());
    }
    tap.set_read_timeout(Some(Duration::from_millis(20)))?;
    Ok(tap)
}

/// Every answer comes twice: taken for the next one's, a copy would show half the time or less.
#[test]
fn repeated_answers_are_counted_and_no_figure_has_them() {
    let Some(pair) = pair("repeated_answers_are_counted_and_no_figure_has_them") else { return };
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let repeating = inside(&pair.names[1], move || {
        let tap = tap(INTERFACE)?;
        let (mut buffer, mut repeated) = (vec![0_u8; 2_000], 0_u64);
        // Relaxed: only ends the loop.
        while !over.load(Ordering::Relaxed) {
            let Ok(bytes) = (&tap).read(&mut buffer) else { continue };
            let frame = &mut buffer[..bytes];
            // UDP over IPv4 from this end: the source is the server's address.
            let is_answer =
                bytes > 42 && frame[12..14] == [8, 0] && frame[23] == 17 && frame[26..30] == [10, 214, 71, 2];
            if is_answer {
                // The interface was to fill the UDP checksum in; 0 is none.
                frame[40..42].fill(0);
                repeated += u64::from(tap.send(frame).is_ok());
            }
        }
        Ok::<_, std::io::Error>(repeated)
    });
    let plain = Scenario { sizes: vec![1, 7, 32, 1_000], ..scenario(Waiting::Block, false) };
    let record = pair.measure(plain);
    is_over.store(true, Ordering::Relaxed);
    let repeated = repeating.join().unwrap().expect("frames");
    check_warnings(&record.warnings);
    let found: u64 = record.sizes.iter().map(|size| size.duplicate_count + size.late_count).sum();
    let iterations: u64 = record.sizes.iter().map(|size| size.figures.iterations).sum();
    let shown: Vec<_> =
        record.sizes.iter().map(|of| (of.duplicate_count, of.late_count, of.figures.iterations)).collect();
    eprintln!("{repeated} repeated; duplicates, late and round trips by size: {shown:?}");
    assert!(record.sizes.len() == 4 && iterations > 100, "{shown:?}");
    // The last copies of a batch may be thrown away between batches.
    assert!(repeated > 100 && found * 10 > repeated * 8 && found <= repeated, "{found} of {repeated}");
    assert!(record.sizes.iter().all(|size| size.lost_count == 0), "{shown:?}");
}

/// Asserts that a run ends with a sentence. On a busy machine, the connection that begins the run may meet so many of the
/// losses that the run ends before it measures, and a short loss may last until the path counts as broken: then it runs
/// again.
fn is_said_in_time(sentence: &str, run: impl Fn() -> PingpongRecord) {
    const OF_A_BUSY_MACHINE: [&str; 2] = ["did not answer within 10 s", "No answer came within"];
    let mut said = Vec::new();
    for _ in 0..10 {
        said = run().warnings;
        let says = |sentence: &str| said.iter().any(|warning| warning.contains(sentence));
        if says(sentence) {
            return;
        }
        assert!(OF_A_BUSY_MACHINE.into_iter().any(says), "{said:?}");
    }
    panic!("{said:?}");
}

#[test]
fn a_path_that_stays_broken_ends_the_run_with_a_sentence() {
    let Some(pair) = pair("a_path_that_stays_broken_ends_the_run_with_a_sentence") else { return };
    let endless = Scenario { time_ms_max: 60_000, ..scenario(Waiting::Block, false) };
    is_said_in_time("No answer came within 0.3 s", || {
        interrupted(&pair, endless.clone(), Duration::from_secs(1), Duration::from_secs(4))
    });
}

#[test]
fn many_losses_end_the_run_with_a_sentence() {
    let Some(pair) = pair("many_losses_end_the_run_with_a_sentence") else { return };
    let rate_per_s = Some(500.0);
    // Much longer than an answer takes on a busy machine: only what the test loses is lost.
    let endless =
        Scenario { time_ms_max: 60_000, timeout_ms: 200, rate_per_s, ..scenario(Waiting::Block, false) };
    is_said_in_time("more than 20 messages were lost", || {
        interrupted(&pair, endless.clone(), Duration::from_millis(100), Duration::from_millis(60))
    });
}
