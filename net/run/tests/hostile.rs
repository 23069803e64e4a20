//! Peers that misbehave must not harm the server.

use super::{Server, beside_others, check, client, short};
use lowlat_net::{
    pingpong::{
        EndFacts, Scenario, Transport,
        protocol::{self, HEAD_BYTES, Message},
    },
    stream::{FLAG_END, Header},
};
use lowlat_net_run::ServerEvent;
use std::{
    io::{Read, Write},
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn answer(stream: &mut TcpStream) -> Option<Message> {
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head).ok()?;
    let mut body = vec![0; protocol::body_bytes(head).ok()?];
    stream.read_exact(&mut body).ok()?;
    protocol::decode(&body).ok()
}

fn open(scenario: Scenario) -> Vec<u8> {
    protocol::encode(&Message::Open { scenario, client: Box::new(EndFacts::default()) })
}

/// Ends connections as the end of a process does. Closing them would not: the server's measuring thread has a copy of
/// this process's descriptors.
fn vanish<const COUNT: usize>(streams: [TcpStream; COUNT]) {
    for stream in streams {
        // A connection that the other side has closed cannot be shut down.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

/// Asserts that the server still serves.
fn serves(server: &Server) {
    check(&client(short(Transport::Tcp), &server.address.to_string()).unwrap());
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
}

#[test]
fn garbage_is_refused_and_does_no_harm() {
    let _beside = beside_others();
    let server = Server::start();
    let long = [b"LWPP\0\x01\xff\xff\xff\xff".as_slice(), &vec![b'x'; 100_000]].concat();
    let version = [b"LWPP\0\x09\0\0\0\x02".as_slice(), b"{}"].concat();
    let wrong_first =
        protocol::encode(&Message::Batch { size_bytes: 1, count: 1, first: 1, is_stamped: false });
    for garbage in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), long, version, wrong_first, vec![0xff; 1 << 20]] {
        let mut stream = connect(&server);
        // The server may close before it has read everything.
        let _ = stream.write_all(&garbage);
        let refused = answer(&mut stream);
        assert!(matches!(refused, Some(Message::Refused { .. }) | None), "{refused:?}");
        server.wait_for(|event| matches!(event, ServerEvent::Refused { .. }));
    }
    serves(&server);
}

#[test]
fn scenarios_beyond_the_limits_are_refused_with_the_reason() {
    let server = Server::start();
    let wrong = [
        Scenario { sizes: vec![u32::MAX], ..Scenario::default() },
        Scenario { iterations_max: u64::MAX, ..Scenario::default() },
        Scenario { transport: Transport::Pipe, ..Scenario::default() },
        Scenario { server_cpu: Some(60_000), ..Scenario::default() },
        Scenario { transport: Transport::UdpMulticast, sizes: vec![1], ..Scenario::default() },
    ];
    for scenario in wrong {
        let mut stream = connect(&server);
        stream.write_all(&open(scenario.clone())).unwrap();
        let answer = answer(&mut stream);
        assert!(matches!(answer, Some(Message::Refused { .. })), "{scenario:?}: {answer:?}");
    }
}

#[test]
fn an_abort_at_any_byte_leaves_the_server_serving() {
    let _beside = beside_others();
    let server = Server::start();
    let frame = open(short(Transport::Tcp));
    for cut in (0..frame.len()).step_by(17) {
        let mut stream = connect(&server);
        stream.write_all(&frame[..cut]).unwrap();
        drop(stream);
    }
    serves(&server);
    // Aborts after the run is open: the slot becomes free again.
    for _ in 0..3 {
        let mut stream = connect(&server);
        stream.write_all(&frame).unwrap();
        assert!(matches!(answer(&mut stream), Some(Message::Opened { .. })));
        vanish([stream]);
        let ended = server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
        let is_noticed = |why: &String| why.contains("closed");
        let ServerEvent::Ended { error, .. } = &ended else { unreachable!() };
        assert!(error.as_ref().is_some_and(is_noticed), "not only after a time limit: {ended:?}");
    }
    serves(&server);
}

/// Opens a run by hand, up to its data connection.
fn opened(server: &Server, scenario: Scenario) -> (TcpStream, TcpStream) {
    let mut control = connect(server);
    control.write_all(&open(scenario)).unwrap();
    let Some(Message::Opened { token, .. }) = answer(&mut control) else { panic!("not opened") };
    let mut data = connect(server);
    data.write_all(&protocol::encode(&Message::Join { token })).unwrap();
    assert_eq!(answer(&mut data), Some(Message::Joined { xdp: None }));
    (control, data)
}

#[test]
fn a_client_that_vanishes_within_a_message_frees_the_server() {
    let _beside = beside_others();
    let server = Server::start();
    for waiting in [lowlat_net::pingpong::Waiting::Block, lowlat_net::pingpong::Waiting::Spin] {
        let (mut control, mut data) = opened(&server, Scenario { waiting, ..short(Transport::Tcp) });
        control
            .write_all(&protocol::encode(&Message::Batch {
                size_bytes: 4_000,
                count: 10,
                first: 1,
                is_stamped: false,
            }))
            .unwrap();
        assert!(matches!(answer(&mut control), Some(Message::Ready { .. })));
        data.write_all(&[1; 1_234]).unwrap();
        vanish([control, data]);
        let ended = server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
        assert!(matches!(ended, ServerEvent::Ended { error: Some(_), .. }), "{ended:?}");
        // Half closed: the data connection stays, the control connection goes.
        let (mut control, data) = opened(&server, Scenario { waiting, ..short(Transport::Tcp) });
        control
            .write_all(&protocol::encode(&Message::Batch {
                size_bytes: 1,
                count: 10,
                first: 1,
                is_stamped: false,
            }))
            .unwrap();
        assert!(matches!(answer(&mut control), Some(Message::Ready { .. })));
        control.shutdown(Shutdown::Write).unwrap();
        server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
        drop(data);
    }
    serves(&server);
}

#[test]
fn batches_outside_of_the_scenario_end_the_run() {
    let _beside = beside_others();
    let server = Server::start();
    for (size_bytes, count) in [(33, 10), (32, u64::MAX)] {
        let (mut control, _data) = opened(&server, short(Transport::Tcp));
        control
            .write_all(&protocol::encode(&Message::Batch { size_bytes, count, first: 1, is_stamped: false }))
            .unwrap();
        let refused = answer(&mut control);
        assert!(
            matches!(&refused, Some(Message::Refused { why }) if why.contains("excludes")),
            "{refused:?}"
        );
        server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
    }
    serves(&server);
}

#[test]
fn rounds_outside_of_the_scenario_end_the_run_and_foreign_messages_are_not_counted() {
    let _beside = beside_others();
    let server = Server::start();
    let sizes = vec![8, 32];
    let scenario = Scenario { sizes, ..short(Transport::Tcp) };
    let round = |size_bytes, count| Message::Round { round: 1, size_bytes, count, counter_hz: Some(1) };
    // Another size than the scenario's, one without room for a header, more messages than it allows.
    for (size_bytes, count) in [(33, 10), (8, 10), (32, u64::MAX)] {
        let (mut control, _data) = opened(&server, scenario.clone());
        control.write_all(&protocol::encode(&round(size_bytes, count))).unwrap();
        let refused = answer(&mut control);
        assert!(
            matches!(&refused, Some(Message::Refused { why }) if why.contains("excludes")),
            "{refused:?}"
        );
        server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
    }
    let (mut control, mut data) = opened(&server, scenario);
    control.write_all(&protocol::encode(&round(32, 10))).unwrap();
    assert_eq!(answer(&mut control), Some(Message::Ready { thread_id: None, incoming_cpu: None }));
    let good = Header { sequence: 3, due_ticks: u64::MAX, round: 1, flags: 0 };
    let ended = Header { flags: FLAG_END, ..good };
    // Another round, a number beyond the round, one good message twice, the end.
    for header in [Header { round: 2, ..good }, Header { sequence: u64::MAX, ..good }, good, good, ended] {
        data.write_all(&[&header.to_bytes()[..], &[0xff; 8]].concat()).unwrap();
    }
    let Some(Message::RoundDone { received, .. }) = answer(&mut control) else { panic!("no result") };
    assert_eq!((received.messages, received.duplicates, received.gaps), (1, 1, 1));
    vanish([control, data]);
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
    serves(&server);
}

#[test]
fn a_second_client_is_refused_and_a_wrong_token_has_no_effect() {
    let _beside = beside_others();
    let (server, control, token, refused) = loop {
        let (server, since) = (Server::start(), Instant::now());
        let mut control = connect(&server);
        control.write_all(&open(short(Transport::Tcp))).unwrap();
        let Some(Message::Opened { token, .. }) = answer(&mut control) else { panic!("not opened") };
        let mut thief = connect(&server);
        thief.write_all(&protocol::encode(&Message::Join { token: "0".repeat(32) })).unwrap();
        assert_eq!(answer(&mut thief), None);
        let mut second = connect(&server);
        second.write_all(&open(short(Transport::Tcp))).unwrap();
        let refused = answer(&mut second);
        // The server waits for a client's second connection for five seconds, which a busy machine may take.
        if since.elapsed() < Duration::from_secs(4) {
            break (server, control, token, refused);
        }
        eprintln!("this host was held for {:?}: once more", since.elapsed());
    };
    assert!(
        matches!(&refused, Some(Message::Refused { why }) if why.contains("another client")),
        "{refused:?}"
    );
    let mut data = connect(&server);
    data.write_all(&protocol::encode(&Message::Join { token })).unwrap();
    assert_eq!(answer(&mut data), Some(Message::Joined { xdp: None }));
    vanish([control, data]);
    server.wait_for(|event| matches!(event, ServerEvent::Ended { .. }));
    serves(&server);
}

#[test]
fn silent_connections_do_not_keep_clients_out() {
    let _beside = beside_others();
    let server = Server::start();
    for (count, first_bytes) in [(64, 0), (200, 0), (64, 3)] {
        let silent: Vec<TcpStream> = (0..count)
            .map(|_| {
                let mut stream = connect(&server);
                stream.write_all(&open(Scenario::default())[..first_bytes]).unwrap();
                stream
            })
            .collect();
        // At once, without waiting for their time limits.
        check(&client(short(Transport::Tcp), &server.address.to_string()).unwrap());
        drop(silent);
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let more = || {
            let mut silent = Vec::new();
            // Relaxed: orders nothing.
            while !is_over.load(Ordering::Relaxed) && silent.len() < 5_000 {
                silent.extend(TcpStream::connect(server.address));
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        scope.spawn(more);
        for transport in [Transport::Tcp, Transport::Udp] {
            let record = client(short(transport), &server.address.to_string());
            if record.is_err() {
                is_over.store(true, Ordering::Relaxed);
            }
            check(&record.unwrap());
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
