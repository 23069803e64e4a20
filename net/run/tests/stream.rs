//! Streams at rising rates, over loopback and between two network namespaces.

use super::{
    Server, alone, check_warnings,
    runs::cpus,
    short,
    veth::{ADDRESSES, inside, pair},
};
use lowlat_host_run::Root;
use lowlat_net::{
    pingpong::{End, Scenario, Transport, Unsound, Waiting},
    stream::{LatencyKind, StreamOptions, StreamRecord, verdict},
};
use lowlat_net_run::{
    ClientOptions, PingpongError, ServerEvent, ServerOptions, StreamClientOptions, run_server, run_stream,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

pub fn options(
    transport: Transport,
    latency: Option<LatencyKind>,
    rates_per_s: &[f64],
) -> StreamClientOptions {
    let scenario = Scenario { sizes: vec![100], iterations_max: 100_000, ..short(transport) };
    let client = ClientOptions {
        scenario,
        server: String::new(),
        command_line: "test".to_owned(),
        percentile: 99.0,
        is_forced: true,
        keeps_samples: false,
    };
    let rates_per_s = rates_per_s.to_vec();
    let stream = StreamOptions {
        rates_per_s,
        is_sweep: false,
        rounds: 2,
        time_ms: 200,
        latency,
        ..StreamOptions::default()
    };
    StreamClientOptions { client, stream }
}

pub fn run(mut options: StreamClientOptions, server: &str) -> Result<StreamRecord, PingpongError> {
    server.clone_into(&mut options.client.server);
    run_stream(&Root::live(), &options, &AtomicBool::new(false), &|_| {})
}

fn check(record: &StreamRecord, rates: &[f64]) {
    check_warnings(&record.set_up.warnings);
    let targets: Vec<f64> = record.rounds.iter().map(|round| round.target_per_s).collect();
    assert_eq!(targets, [rates, rates].concat());
    for round in &record.rounds {
        let received = &round.received;
        assert!(round.sent > 0 && received.messages <= round.sent, "{round:?}");
        // One path without a NIC neither repeats nor reorders.
        assert_eq!((received.duplicates, received.reordered, round.dropped_by_sender), (0, 0, 0));
        let latency = round.latency.as_ref().expect("latency");
        assert!(latency.figures.min_ns > 0 && latency.figures.max_ns < 60_000_000_000, "{latency:?}");
        assert!(round.lateness.as_ref().expect("lateness").figures.iterations == round.sent);
    }
}

#[test]
fn every_message_is_counted_on_a_shared_counter() {
    let _alone = alone();
    let server = Server::start();
    for transport in [Transport::Udp, Transport::Tcp] {
        let rates = [500.0, 2_000.0];
        let record = run(options(transport, None, &rates), &server.address.to_string()).unwrap();
        check(&record, &rates);
        assert_eq!((record.latency, record.return_ns), (LatencyKind::OneWay, None));
        for round in &record.rounds {
            assert!(round.sent as f64 <= round.target_per_s / 5.0, "{round:?}");
            // A server without a CPU for long loses messages in its socket, and nowhere else.
            // Its counter also has what ends the round.
            let dropped = round.received.dropped.map(|dropped| dropped.checked_sub(round.lost()));
            let is_udp = transport == Transport::Udp;
            assert!(
                if is_udp { dropped.flatten().is_some_and(|ends| ends <= 3) } else { dropped.is_none() },
                "{round:?}"
            );
            assert!(transport == Transport::Udp || round.lost() == 0, "{round:?}");
            assert_eq!(round.latency.as_ref().unwrap().figures.iterations, round.received.messages);
        }
        let client = Unsound::IdleStates { end: End::Client };
        assert!(!record.set_up.unsound.contains(&client), "the client spins");
    }
}

#[test]
fn echoes_give_the_latency_where_the_counter_is_not_shared() {
    let _alone = alone();
    let server = Server::start();
    for transport in [Transport::Udp, Transport::Tcp] {
        let rates = [1_000.0];
        let echo = options(transport, Some(LatencyKind::Echo), &rates);
        let record = run(echo, &server.address.to_string()).unwrap();
        check(&record, &rates);
        assert!(record.return_ns.is_some_and(|ns| ns > 0), "{record:?}");
        let latency = record.rounds[0].latency.as_ref().unwrap();
        assert!(latency.figures.iterations <= record.rounds[0].sent);
    }
}

#[test]
fn losses_of_a_full_socket_are_those_of_the_receiver() {
    let _alone = alone();
    let Some(pair) = pair("losses_of_a_full_socket_are_those_of_the_receiver") else { return };
    let (stop, (sender, events)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let stopped = Arc::clone(&stop);
    let server = inside(&pair.names[1], move || {
        let sender = std::sync::Mutex::new(sender);
        let listen = vec![format!("{}:0", ADDRESSES[1]).parse().unwrap()];
        let options = ServerOptions { listen, ..ServerOptions::default() };
        run_server(&Root::live(), &options, &stopped, &|event| {
            let _ = sender.lock().unwrap().send(event.clone());
        })
    });
    let Ok(ServerEvent::Listens(address)) = events.recv_timeout(Duration::from_secs(10)) else { panic!() };
    let mut fast = options(Transport::Udp, None, &[400_000.0]);
    fast.client.scenario.waiting = Waiting::Block;
    let record = inside(&pair.names[0], move || run(fast, &address.to_string())).join().unwrap().unwrap();
    stop.store(true, Ordering::Relaxed);
    server.join().unwrap().unwrap();
    for round in &record.rounds {
        eprintln!(
            "sent {}, received {}, dropped by the receiver {:?}, lost on the way {}",
            round.sent,
            round.received.messages,
            round.received.dropped,
            round.lost_on_the_way()
        );
        let dropped = round.received.dropped.expect("the kernel counts them");
        assert!(round.lost() == 0 || dropped > 0, "{round:?}");
    }
    if record.rounds.iter().all(|round| round.lost() == 0) {
        eprintln!("skipped: losses_of_a_full_socket: this host kept up with 400,000 messages/s");
    }
}

#[test]
fn a_search_ends_with_a_rate_or_without_and_a_stopped_one_keeps_its_rounds() {
    let _alone = alone();
    if cpus() < 2 {
        eprintln!("skipped: a_search_ends: one CPU");
        return;
    }
    let server = Server::start();
    let mut search = options(Transport::Udp, None, &[1_000.0]);
    // A limit that no rate keeps, so that the search goes down and ends.
    (search.stream.is_sweep, search.stream.p99_ns_max, search.stream.time_ms) = (true, Some(1), 500);
    let record = run(search.clone(), &server.address.to_string()).unwrap();
    assert_eq!(verdict(&record.options, &record.rounds).holds_per_s, None);
    assert!(record.rounds.len() > 1, "{record:?}");
    let stop = Arc::new(AtomicBool::new(false));
    search.stream.time_ms = 60_000;
    search.client.scenario.iterations_max = 100_000_000;
    search.client.server = server.address.to_string();
    let stopped = Arc::clone(&stop);
    let running = thread::spawn(move || run_stream(&Root::live(), &search, &stopped, &|_| {}));
    thread::sleep(Duration::from_millis(1_500));
    stop.store(true, Ordering::Relaxed);
    let record = running.join().unwrap().unwrap();
    assert!(
        record.set_up.warnings.iter().any(|one| one.contains("interrupted")),
        "{:?}",
        record.set_up.warnings
    );
    // The server is free again.
    run(options(Transport::Udp, None, &[500.0]), &server.address.to_string()).unwrap();
}
