//! Losses that a hand-made exchange plants, and connections that break.

use super::{free_port, number, run, warnings};
use lowlat_feed::{
    Content, DATAGRAM_BYTES_MAX, Head,
    gateway::{Kind, MESSAGE_BYTES, Message},
    quotes::{FeedQuote, write_head, write_quote},
};
use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Sends datagrams of quotes of instrument 0.
struct Sender {
    socket: UdpSocket,
    to: String,
}

impl Sender {
    fn send(&self, session: u64, sequence: u64, content: Content) {
        let mut bytes = [0; DATAGRAM_BYTES_MAX];
        let length = write_head(&Head { session, sequence, content }, &mut bytes);
        if let Content::Messages(count) = content {
            let quote = FeedQuote { bid: 10_000, ask: 10_100, last: 10_000, ..FeedQuote::default() };
            (0..usize::from(count)).for_each(|at| write_quote(at, &quote, &mut bytes));
        }
        self.socket.send_to(&bytes[..length], &self.to).unwrap();
        // In this order, also for a receiver that is not running now.
        thread::sleep(Duration::from_millis(1));
    }
}

fn read(stream: &mut TcpStream) -> Option<Message> {
    let mut bytes = [0; MESSAGE_BYTES];
    stream.read_exact(&mut bytes).ok()?;
    Some(Message::decode(&bytes).unwrap())
}

/// An exchange that runs this once a pipeline is ready. Returns the arguments of a feed and a gateway.
fn exchange(body: impl FnOnce(&Sender, TcpStream) + Send + 'static) -> (String, String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = format!("tcp:{}", listener.local_addr().unwrap());
    let to = format!("127.0.0.1:{}", free_port());
    let feed = format!("udp:{to}");
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert_eq!(read(&mut stream).unwrap().kind, Kind::Logon);
        stream.write_all(&Message::of(Kind::LoggedOn).encode()).unwrap();
        assert_eq!(read(&mut stream).unwrap().kind, Kind::Start);
        let sender = Sender { socket: UdpSocket::bind("127.0.0.1:0").unwrap(), to };
        // md has its begin message by then, and a heartbeat tells it where the sequence starts.
        thread::sleep(Duration::from_millis(500));
        sender.send(7, 1, Content::Heartbeat);
        body(&sender, stream);
    });
    (feed, gateway, thread)
}

/// Answers orders until the connection ends.
fn answer(mut stream: TcpStream) {
    while let Some(order) = read(&mut stream) {
        assert_eq!(order.kind, Kind::Order);
        for kind in [Kind::Accepted, Kind::Filled] {
            stream.write_all(&Message { kind, ..order }.encode()).unwrap();
        }
    }
}

#[test]
fn planted_losses_are_reported_exactly() {
    let (feed, gateway, thread) = exchange(|sender, stream| {
        let answering = thread::spawn(move || answer(stream));
        // 1 and 2 are lost, 10 arrives twice, 21 and 22 are lost, 15 arrives late, the last one is lost.
        for (first, count) in [(3, 8), (10, 1), (11, 4), (16, 5), (15, 1), (23, 10)] {
            sender.send(7, first, Content::Messages(count));
        }
        sender.socket.send_to(b"not of this feed", &sender.to).unwrap();
        sender.send(7, 34, Content::End);
        answering.join().unwrap();
    });
    let asked = ["--strategies", "1", "--feed", &feed, "--gateway", &gateway, "--duration", "20s"];
    let (document, output) = run(None, &asked);
    thread.join().unwrap();
    let feed = |name: &str| number(&document, &format!("/wire/feed/{name}"));
    assert_eq!((feed("received"), feed("missing"), feed("gaps")), (27, 6, 4), "{}", warnings(&document));
    assert_eq!((feed("late"), feed("doubled"), feed("malformed")), (1, 1, 1));
    assert_eq!((feed("missing_in_socket"), feed("socket_drops")), (0, 0));
    assert_eq!((feed("first_gap/first"), feed("first_gap/last")), (1, 2));
    assert_eq!((feed("last_gap/first"), feed("last_gap/last")), (33, 33));
    assert_eq!(number(&document, "/ticks_published"), 27);
    assert_eq!((number(&document, "/orders"), number(&document, "/answers")), (27, 27));
    assert_eq!(output.status.code(), Some(1));
    let said = warnings(&document);
    assert!(
        said.contains("6 messages of the feed are missing in 4 gaps (first 1 to 2, last 33 to 33)"),
        "{said}"
    );
}

#[test]
fn a_lost_exchange_is_reported_and_nothing_hangs() {
    let (feed, gateway, thread) = exchange(|sender, mut stream| {
        sender.send(7, 1, Content::Messages(5));
        // It answers two of the orders, and ends in the middle of a message. It reads all orders: otherwise the end
        // would be a reset, which discards the answers.
        let orders: Vec<Message> = (0..5).map(|_| read(&mut stream).unwrap()).collect();
        for order in orders.into_iter().take(2) {
            stream.write_all(&Message { kind: Kind::Accepted, ..order }.encode()).unwrap();
        }
        stream.write_all(&[1, 2, 3]).unwrap();
        drop(stream);
        thread::sleep(Duration::from_millis(300));
        sender.send(7, 6, Content::Messages(4));
        sender.send(7, 10, Content::End);
    });
    let asked = ["--strategies", "1", "--feed", &feed, "--gateway", &gateway, "--duration", "20s"];
    let (document, output) = run(None, &asked);
    thread.join().unwrap();
    let gateway = |name: &str| number(&document, &format!("/wire/gateway/{name}"));
    assert_eq!((number(&document, "/orders"), number(&document, "/answers")), (9, 9));
    assert_eq!(
        (gateway("sent"), gateway("unsent"), gateway("accepted")),
        (5, 4, 2),
        "{}",
        warnings(&document)
    );
    assert_eq!(gateway("lost_in_flight"), 5, "two were accepted and not filled");
    assert_eq!(number(&document, "/rejected"), 7);
    assert_eq!(document.pointer("/wire/gateway/is_lost"), Some(&true.into()));
    assert_eq!(output.status.code(), Some(1));
    assert!(
        warnings(&document).contains("the connection to the exchange is lost"),
        "{}",
        warnings(&document)
    );
}

#[test]
fn an_exchange_that_is_not_there_ends_the_run_with_a_hint() {
    let runs = tempfile::TempDir::new().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let gateway = format!("tcp:127.0.0.1:{port}");
    let asked = ["pipeline", "run", "--strategies", "1", "--gateway", &gateway];
    let output = super::lowlat(None, &asked).env("XDG_RUNTIME_DIR", runs.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot log on to the exchange tcp:127.0.0.1:"), "{said}");
    assert!(said.contains("hint: start the exchange first"), "{said}");
}
