//! Every transport with every muxer and waiting mode.

use super::{Server, alone, beside_others, check, client, client_until, is_of_load, short, until_fair};
use lowlat_net::pingpong::{Muxer, Scenario, Transport, Unsound, Waiting};
use lowlat_net_run::{PingpongError, ServerEvent};
use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

const LOCAL: [Transport; 4] =
    [Transport::UnixStream, Transport::UnixDatagram, Transport::UnixSeqpacket, Transport::Pipe];

pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns whether this kernel lets this process use `io_uring`.
fn has_io_uring() -> bool {
    let scenario = Scenario { muxer: Muxer::IoUring, ..short(Transport::Pipe) };
    match client(scenario, "") {
        Err(PingpongError::SetUp { source, .. }) => {
            eprintln!("skipped: io_uring: {source}");
            false
        }
        _ => true,
    }
}

#[test]
fn local_transports_work_with_every_muxer() {
    let _beside = beside_others();
    let has_io_uring = has_io_uring();
    for transport in LOCAL {
        for muxer in Muxer::ALL.iter().copied().filter(|muxer| has_io_uring || *muxer != Muxer::IoUring) {
            for waiting in [Waiting::Block, Waiting::Spin] {
                if waiting.spins() && cpus() < 2 {
                    eprintln!("skipped: spin: one CPU");
                    continue;
                }
                check(&client(Scenario { muxer, waiting, ..short(transport) }, "").unwrap());
            }
        }
    }
}

#[test]
fn tcp_and_udp_work_with_every_muxer_over_both_families() {
    let _beside = beside_others();
    let has_io_uring = has_io_uring();
    for listen in ["127.0.0.1:0", "[::1]:0"] {
        let server = Server::start_on(listen.parse().unwrap(), false);
        for transport in [Transport::Tcp, Transport::Udp] {
            for muxer in Muxer::ALL.iter().copied().filter(|muxer| has_io_uring || *muxer != Muxer::IoUring) {
                let scenario = Scenario { muxer, is_quickack: true, ..short(transport) };
                let record = client(scenario, &server.address.to_string()).unwrap();
                check(&record);
                assert!(record.is_same_host, "the boot ids are equal");
                assert!(record.unsound.contains(&Unsound::Loopback { is_nic_meant: false }));
            }
        }
    }
}

#[test]
fn both_ends_report_their_cpu_time() {
    let _alone = alone();
    let server = Server::start();
    let share = |rate_per_s| {
        let scenario = Scenario { rate_per_s, sizes: vec![32], iterations_max: 100, ..short(Transport::Udp) };
        let record = client(scenario, &server.address.to_string()).unwrap();
        let size = &record.sizes[0];
        [size.client_cpu, size.server_cpu].map(|cpu| cpu.and_then(|cpu| cpu.share()).expect("a share"))
    };
    // 100 messages in a second leave both ends idle; the client's spinning until each is due does not count.
    // Where other work interrupts the spinning, nothing may be left of so little.
    let shares = (0..10).map(|_| share(Some(100.0))).find(|shares| shares.iter().all(|share| *share > 0.0));
    assert!(shares.is_some_and(|shares| shares.iter().all(|share| *share < 0.5)), "{shares:?}");
    assert!(share(None).iter().all(|share| *share > 0.0));
}

#[test]
fn busy_polling_over_loopback_runs_and_is_marked() {
    let _beside = beside_others();
    let server = Server::start();
    for (muxer, waiting) in [(Muxer::None, Waiting::BusyPoll), (Muxer::Epoll, Waiting::EpollBusyPoll)] {
        let scenario = Scenario { muxer, waiting, ..short(Transport::Udp) };
        match client(scenario, &server.address.to_string()) {
            Err(error @ PingpongError::SetUp { .. }) => eprintln!("skipped: {waiting}: {error}"),
            Err(error) => panic!("{error}"),
            Ok(record) => {
                let is_marked = |one: &Unsound| matches!(one, Unsound::NoQueueToPoll { .. });
                assert_eq!(record.unsound.iter().filter(|one| is_marked(one)).count(), 2, "{record:?}");
            }
        }
    }
}

#[test]
fn multicast_reaches_the_server_and_comes_back() {
    let _beside = beside_others();
    let server = Server::start();
    let group = Some("239.255.71.1".parse().unwrap());
    let scenario = Scenario { group, sizes: vec![0, 32], ..short(Transport::UdpMulticast) };
    check(&client(scenario, &server.address.to_string()).unwrap());
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_due_time() {
    let _beside = beside_others();
    let scenario = Scenario {
        rate_per_s: Some(2_000.0),
        sizes: vec![32],
        time_ms_max: 200,
        iterations_max: 400,
        ..short(Transport::UnixStream)
    };
    let record = client(scenario, "").unwrap();
    check(&record);
    let size = &record.sizes[0];
    // 400 messages at 2,000/s take 0.2 s at least, whatever the host does.
    assert!(size.elapsed_ns > 150_000_000, "{size:?}");
    let from_send = size.from_send.as_ref().expect("both times");
    assert_eq!(from_send.iterations, size.figures.iterations);
    assert!(from_send.median_ns <= size.figures.median_ns);
}

#[test]
fn pinned_ends_on_one_host_have_a_control_before_each_size_and_after_the_last() {
    let _beside = beside_others();
    let record = until_fair(
        || client(short(Transport::Pipe), "").unwrap(),
        |record| !record.warnings.iter().any(|warning| is_of_load(warning)),
    );
    if cpus() < 2 {
        assert!(record.controls.is_empty() && record.control_missing.is_some());
        eprintln!("skipped: control: one CPU");
        return;
    }
    assert_eq!(record.controls.len(), 4, "{:?}", record.warnings);
    assert!(record.controls.iter().all(|row| row.figures.min_ns > 0));
}

#[test]
fn a_stopped_client_keeps_what_it_has_and_the_server_serves_the_next() {
    let _beside = beside_others();
    let server = Server::start();
    let stop = AtomicBool::new(false);
    let record = thread::scope(|scope| {
        let scenario = Scenario { time_ms_max: 60_000, iterations_max: 10_000_000, ..short(Transport::Tcp) };
        let running = scope.spawn(|| client_until(scenario, &server.address.to_string(), &stop));
        server.wait_for(|event| matches!(event, ServerEvent::Started { .. }));
        thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap()
    });
    assert!(record.warnings.iter().any(|warning| warning.contains("interrupted")), "{:?}", record.warnings);
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
    check(&client(short(Transport::Tcp), &server.address.to_string()).unwrap());
}

/// The measuring threads have their own tables of descriptors, and what they are given stays open in the other one.
#[test]
fn runs_leave_no_descriptors_behind() {
    // In a process of its own, because other tests open some too.
    const IN_OWN_PROCESS: &str = "LOWLAT_TEST_IN_OWN_PROCESS";
    if std::env::var_os(IN_OWN_PROCESS).is_none() {
        let name = "runs::runs_leave_no_descriptors_behind";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(IN_OWN_PROCESS, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let server = Server::start();
    let address = server.address.to_string();
    let every = || {
        for muxer in [Muxer::None, Muxer::Poll, Muxer::Epoll] {
            for transport in LOCAL {
                check(&client(Scenario { muxer, ..short(transport) }, "").unwrap());
            }
            for transport in [Transport::Tcp, Transport::Udp] {
                check(&client(Scenario { muxer, ..short(transport) }, &address).unwrap());
            }
        }
    };
    every();
    let before = open();
    every();
    // The server closes its own side later.
    let is_back = || open() <= before;
    let mut tries = 0;
    while !is_back() && tries < 100 {
        thread::sleep(Duration::from_millis(100));
        tries += 1;
    }
    assert!(is_back(), "{before} before, {} after", open());
}

#[test]
fn a_server_for_one_run_ends_after_it() {
    let _beside = beside_others();
    let mut server = Server::start_on("127.0.0.1:0".parse().unwrap(), true);
    check(&client(short(Transport::Tcp), &server.address.to_string()).unwrap());
    server.thread.take().unwrap().join().unwrap().unwrap();
    server.thread = Some(thread::spawn(|| Ok(())));
}

#[test]
fn nobody_listening_is_an_error_with_a_hint() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = client(short(Transport::Tcp), &free.to_string()).unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to 127.0.0.1:") && error.contains("\nhint: start"), "{error}");
    assert!(matches!(client(short(Transport::Tcp), "no host at all"), Err(PingpongError::Name { .. })));
}
