//! A long way between two network namespaces: delay, loss, repetition and another order, each counted right.
//!
//! A forwarder in a third namespace does to datagrams what netem does where the kernel has it; TCP frames pass
//! untouched.

use super::{
    client,
    losses::tap,
    short,
    stream::{options, run},
    veth::{ADDRESSES, inside, ip, pair_over},
};
use lowlat_net::{
    pingpong::{Scenario, Transport},
    stream::LatencyKind,
};
use std::{
    collections::VecDeque,
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Faults of the path: the delay of each datagram, and others once in this many datagrams; 0 for none.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    delay_ms: u64,
    lost_every: u64,
    repeated_every: u64,
    /// It arrives after the next one.
    held_every: u64,
}

/// Numbers of datagrams with each fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Done {
    lost: u64,
    repeated: u64,
    held: u64,
}

/// Forwards from one interface of the calling thread's namespace to another.
fn forward(from: &str, to: &str, way: Way, is_over: &AtomicBool) -> std::io::Result<Done> {
    let (from, to) = (tap(from)?, tap(to)?);
    from.set_read_timeout(Some(Duration::from_millis(1)))?;
    let (mut done, mut count, mut held) = (Done::default(), 0_u64, None);
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0_u8; 4_000];
    // Relaxed: only ends the loop.
    while !is_over.load(Ordering::Relaxed) {
        while waiting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            let (_, frame) = waiting.pop_front().unwrap();
            to.send(&frame)?;
        }
        let Ok(bytes) = (&from).read(&mut buffer) else { continue };
        let frame = buffer[..bytes].to_vec();
        let is_datagram = bytes > 42 && frame[12..14] == [8, 0] && frame[23] == 17;
        if !is_datagram {
            to.send(&frame)?;
            continue;
        }
        count += 1;
        let is_nth = |every: u64| every > 0 && count.is_multiple_of(every);
        if is_nth(way.lost_every) {
            done.lost += 1;
            continue;
        }
        if held.is_none() && is_nth(way.held_every) {
            done.held += 1;
            held = Some(frame);
            continue;
        }
        let due = Instant::now() + Duration::from_millis(way.delay_ms);
        if is_nth(way.repeated_every) {
            done.repeated += 1;
            waiting.push_back((due, frame.clone()));
        }
        waiting.push_back((due, frame));
        waiting.extend(held.take().map(|frame| (due, frame)));
    }
    Ok(done)
}

struct Forwarder {
    is_over: Arc<AtomicBool>,
    ways: Vec<JoinHandle<std::io::Result<Done>>>,
}

impl Forwarder {
    /// Starts one in the namespace between; only what goes to the server has a way with more than delay.
    fn start(middle: &str, way: Way) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let back = Way { delay_ms: way.delay_ms, ..Way::default() };
        let ways = [("a0", "b0", way), ("b0", "a0", back)].map(|(from, to, way)| {
            let over = Arc::clone(&is_over);
            inside(middle, move || forward(from, to, way, &over))
        });
        Self { is_over, ways: ways.into() }
    }

    fn end(self) -> Done {
        self.is_over.store(true, Ordering::Relaxed);
        let mut done = self.ways.into_iter().map(|way| way.join().unwrap().expect("frames pass"));
        done.next().unwrap()
    }
}

/// The namespace between; deleted with this.
struct Middle(String);

impl Middle {
    fn new(test: &str) -> Option<Self> {
        let middle = Self(format!("lowlat-net-{}-m", std::process::id()));
        if ip(&["netns", "add", &middle.0]).is_err() {
            eprintln!("skipped: {test}: needs root for network namespaces");
            return None;
        }
        Some(middle)
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.0]);
    }
}

#[test]
fn each_fault_of_the_way_is_counted_as_what_it_is() {
    let test = "each_fault_of_the_way_is_counted_as_what_it_is";
    let Some(Middle(middle)) = &Middle::new(test) else { return };
    let Some(pair) = pair_over(test, middle) else { return };
    let pingpong = Scenario {
        sizes: vec![32],
        timeout_ms: 400,
        warm_up_ms: 0,
        time_ms_max: 3_000,
        iterations_max: 600,
        ..short(Transport::Udp)
    };
    for way in [
        Way { delay_ms: 2, ..Way::default() },
        Way { lost_every: 97, ..Way::default() },
        Way { repeated_every: 10, ..Way::default() },
        Way { held_every: 50, ..Way::default() },
    ] {
        // Ping-pong: one message is on its way at a time, so a held one is lost until it comes too late.
        let forwarder = Forwarder::start(middle, way);
        let scenario = pingpong.clone();
        let record = pair.beside_server(ADDRESSES[1], move |name| client(scenario, &name)).unwrap();
        thread::sleep(Duration::from_millis(50));
        let done = forwarder.end();
        let size = &record.sizes[0];
        let found = (size.lost_count, size.late_count, size.duplicate_count);
        eprintln!("ping-pong, {way:?}: {done:?}, found {found:?} beside {:?}", size.figures);
        assert!(size.figures.iterations > 50, "{way:?}: {:?} {:?}", size.figures, record.warnings);
        // A machine that is busy for longer than the time-out loses more, and late ones are counted as such.
        assert!(size.lost_count >= done.lost + done.held && size.late_count <= size.lost_count, "{found:?}");
        // The last one may come after the end.
        let not_late = size.lost_count - size.late_count;
        assert!(not_late <= done.lost + done.held + 1, "{way:?}: {done:?} {found:?}");
        assert!(size.duplicate_count * 10 >= done.repeated * 8 && size.duplicate_count <= done.repeated);
        // Delay is there and back; half a round trip has one of them.
        assert!(size.figures.min_ns >= way.delay_ms * 1_000_000, "{way:?}: {:?}", size.figures);

        // A stream: messages follow each other, so a held one comes after the next.
        // A busy machine may leave a stream of so short a time without a turn: then another.
        let (record, done) = (0..20)
            .map(|_| {
                let forwarder = Forwarder::start(middle, way);
                let mut plan = options(Transport::Udp, Some(LatencyKind::OneWay), &[2_000.0]);
                plan.stream.rounds = 1;
                let record = pair.beside_server(ADDRESSES[1], move |name| run(plan, &name)).unwrap();
                (record, forwarder.end())
            })
            .find(|(record, _)| record.rounds[0].sent > 300)
            .expect("a stream that has its turn");
        let (round, received) = (&record.rounds[0], &record.rounds[0].received);
        let found = (round.lost(), received.duplicates, received.reordered);
        eprintln!("stream, {way:?}: {done:?}, found {found:?} of {}", round.sent);
        // The frames that announce and end a round pass the forwarder too.
        assert!(round.lost().abs_diff(done.lost) <= 1, "{done:?} {found:?}");
        assert!(received.duplicates.abs_diff(done.repeated) <= 2, "{done:?} {found:?}");
        assert!(received.reordered.abs_diff(done.held) <= 1, "{done:?} {found:?}");
        let p50_ns = round.latency.as_ref().map(|latency| latency.figures.median_ns);
        assert!(p50_ns.is_some_and(|ns| ns >= way.delay_ms * 1_000_000), "{p50_ns:?}");
    }
}
