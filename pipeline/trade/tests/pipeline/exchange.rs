//! A simulated exchange survives what clients do.

use lowlat_feed::gateway::{Kind, MESSAGE_BYTES, Message};
use lowlat_pipeline::ExchangeDocument;
use lowlat_trade::{
    md::Feed,
    scenario::{Scenario, Speed},
    wire::exchange::{ExchangeEvent, ExchangeFeed, ExchangeOptions, run},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

fn start() -> (SocketAddr, Arc<AtomicBool>, JoinHandle<ExchangeDocument>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (tell, told) = mpsc::channel();
    let flag = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let options = ExchangeOptions {
            feed: None,
            interface: None,
            gateway: Some("tcp:127.0.0.1:0".parse().unwrap()),
            content: ExchangeFeed::Quotes(Feed::simulated(&Scenario::at_rate(4, 100.0, 100.0).unwrap(), 1)),
            speed: Speed::parse("x1").unwrap(),
            is_spinning: false,
        };
        let listens = |event: &ExchangeEvent| {
            if let ExchangeEvent::Listens(address) = event {
                tell.send(*address).unwrap();
            }
        };
        run(options, &flag, &listens).unwrap()
    });
    (told.recv().unwrap(), stop, thread)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn log_on(address: SocketAddr) -> TcpStream {
    // Refused while the connections of before are still being closed.
    for _ in 0..1000 {
        let mut stream = connect(address);
        let mut answer = [0; MESSAGE_BYTES];
        let is_sent = stream.write_all(&Message::of(Kind::Logon).encode()).is_ok();
        if is_sent && stream.read_exact(&mut answer).is_ok() {
            assert_eq!(Message::decode(&answer).unwrap().kind, Kind::LoggedOn);
            return stream;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no logon was accepted");
}

fn read(stream: &mut TcpStream) -> Message {
    let mut bytes = [0; MESSAGE_BYTES];
    stream.read_exact(&mut bytes).unwrap();
    Message::decode(&bytes).unwrap()
}

fn order(id: u64) -> Message {
    Message {
        id,
        number: id,
        price: 100,
        quantity: 3,
        instrument: 1,
        strategy: 2,
        ..Message::of(Kind::Order)
    }
}

/// True if the exchange has closed it.
fn is_closed(mut stream: TcpStream) -> bool {
    matches!(stream.read(&mut [0; 4096]), Ok(0) | Err(_))
}

#[test]
fn garbage_aborts_and_floods_end_their_connection_and_no_other() {
    let (address, stop, thread) = start();
    let mut good = log_on(address);
    let half_open = connect(address);
    let mut garbage = connect(address);
    garbage.write_all(&[0xa5; 5000]).unwrap();
    assert!(is_closed(garbage));
    let mut impatient = connect(address);
    impatient.write_all(&order(1).encode()).unwrap();
    assert!(is_closed(impatient), "an order before the logon");
    let mut jumping = log_on(address);
    jumping.write_all(&order(2).encode()).unwrap();
    assert!(is_closed(jumping), "order 2 without order 1");
    // The connection ends at each byte of a logon and an order.
    let bytes = [Message::of(Kind::Logon).encode(), order(1).encode()].concat();
    for end in 0..bytes.len() {
        let mut aborted = connect(address);
        aborted.write_all(&bytes[..end]).unwrap();
    }
    // A client that sends and never reads.
    let mut flood = log_on(address);
    flood.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let flooded = (1..2_000_000).try_for_each(|id| flood.write_all(&order(id).encode()));
    assert!(flooded.is_err(), "its answers are not kept without bound");
    let mut many: Vec<TcpStream> = (0..40).map(|_| connect(address)).collect();
    let last = many.pop().unwrap();
    assert!(is_closed(last), "connections are limited");
    drop(many);
    for id in 1..=10 {
        good.write_all(&order(id).encode()).unwrap();
        let answers = [read(&mut good), read(&mut good)];
        assert_eq!(
            answers.map(|answer| (answer.kind, answer.id)),
            [(Kind::Accepted, id), (Kind::Filled, id)]
        );
    }
    let unknown = Message { instrument: 9, ..order(11) };
    good.write_all(&unknown.encode()).unwrap();
    assert_eq!((read(&mut good).kind, thread.is_finished()), (Kind::Rejected, false));
    drop((good, half_open));
    stop.store(true, Ordering::Relaxed);
    let done = thread.join().unwrap();
    let reasons = done.refused.join("\n");
    for said in ["version", "Order is unexpected", "found order 2, expected 1", "in the middle of a message"]
    {
        assert!(reasons.contains(said), "{said}: {reasons}");
    }
    assert!(done.refused.len() <= 20 && done.refused_total > 60, "{reasons}");
}
