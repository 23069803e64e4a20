//! A simulated exchange survives what clients do.

use super::{area, master};
use crate::master_thread::{LONG, MasterThread};
use lowlat_feed::gateway::{Kind, MESSAGE_BYTES, Message};
use lowlat_node::{
    Event, Node, Strategies, TD_STREAM, Wait,
    clock::now_ns,
    ledger::{AREA, Ledger},
    records::{Answer, OrderType, Outcome, Reject, Side, kind},
    strategy::{self, Numbers, OrderCause, OrderStream, Orders},
};
use lowlat_pipeline::ExchangeDocument;
use lowlat_trade::{
    md::Feed,
    roles::{
        self,
        td::{HALT, TdDone, TdOptions},
    },
    scenario::{Scenario, Speed},
    td::{Limits, Matching, Rules},
    wire::{
        GatewayAddress,
        exchange::{ExchangeEvent, ExchangeFeed, ExchangeOptions, run},
    },
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
    time::{Duration, Instant},
};

fn start(has_no_fills: bool) -> (SocketAddr, Arc<AtomicBool>, JoinHandle<ExchangeDocument>) {
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
            has_no_fills,
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
    let (address, stop, thread) = start(false);
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

/// The answers to what a strategy asks for: outcome, price and quantity of each.
fn answers(
    node: &mut Node,
    numbers: &mut Numbers,
    count: usize,
    ask: &mut dyn FnMut(&mut Orders<'_>),
) -> Vec<(Outcome, i64, u32)> {
    let mut sink = OrderStream::new(node.publisher(), numbers, |error| panic!("{error}"));
    ask(&mut Orders::new(&mut sink, 0, OrderCause::at(now_ns())));
    let (mut answers, start) = (Vec::new(), Instant::now());
    while answers.len() < count {
        assert!(start.elapsed() < LONG, "{answers:?}");
        node.wait(Some(now_ns() + 10_000_000));
        node.poll(&mut |_, event| {
            if let Event::Record { record, payload, .. } = event
                && record.stamp.kind == kind::ANSWER
            {
                let Answer { outcome, price, quantity, .. } = Answer::decode(payload).unwrap();
                answers.push((outcome, price, quantity));
            }
        });
    }
    answers
}

/// td, with its gateway to the exchange.
fn start_td(master: &MasterThread, exchange: SocketAddr) -> JoinHandle<TdDone> {
    let rules = Rules { instruments: 4, matching: Matching::AtOnce(1), limits: Limits::default() };
    let node = master.join(&roles::td::join(1 << 16, &rules, Wait::Parked));
    let gateway = Some(GatewayAddress(exchange));
    thread::spawn(move || roles::td::run(node, &TdOptions { rules, gateway }).unwrap())
}

/// Changes of orders reach the exchange, and their answers the strategy and the ledger.
#[test]
fn orders_are_changed_over_a_gateway() {
    let (address, stop, exchange) = start(true);
    let master: MasterThread = master();
    let td = start_td(&master, address);
    let join = strategy::join("s0", "strategy", Strategies::Only(vec![0]), &[1], 1 << 16, Wait::Parked);
    let mut node = master.join(&join);
    master.begin();
    let unknown = Outcome::NotChanged(Reject::UnknownOrder);
    let (mut first, mut last) = (0, 0);
    let mut numbers = strategy::numbers_of(&node, 0);
    let mut ask = |count, ask: &mut dyn FnMut(&mut Orders<'_>)| answers(&mut node, &mut numbers, count, ask);
    let accepted = ask(1, &mut |orders| first = orders.send(1, Side::Buy, 10_000, 100).unwrap());
    assert_eq!(accepted, [(Outcome::Accepted, 10_000, 100)]);
    let replaced = ask(1, &mut |orders| orders.replace(1, first, 11_000, 150).unwrap());
    assert_eq!(replaced, [(Outcome::Replaced, 11_000, 150)]);
    let cancelled = ask(1, &mut |orders| orders.cancel(1, first).unwrap());
    assert_eq!(cancelled, [(Outcome::Cancelled, 11_000, 150)]);
    assert_eq!(ask(1, &mut |orders| orders.cancel(1, first).unwrap())[0].0, unknown);
    let at_once = OrderType::ImmediateOrCancel;
    let lapsed = ask(2, &mut |orders| _ = orders.send_as(at_once, 1, Side::Sell, 9_000, 7).unwrap());
    assert_eq!(lapsed, [(Outcome::Accepted, 9_000, 7), (Outcome::Cancelled, 9_000, 7)]);
    // Both at once: the exchange answers in order.
    let both = ask(2, &mut |orders| {
        last = orders.send(1, Side::Sell, 12_000, 5).unwrap();
        orders.replace(1, last, 12_000, 3).unwrap();
    });
    assert_eq!(both, [(Outcome::Accepted, 12_000, 5), (Outcome::Replaced, 12_000, 3)]);
    let refused = ask(1, &mut |orders| orders.replace(1, last, 12_000, 0).unwrap());
    assert_eq!(refused[0].0, Outcome::NotChanged(Reject::BadQuantity));
    let open = Ledger::look(area(&master, AREA)).unwrap().open_orders(0).unwrap();
    let open: Vec<_> = open.iter().map(|order| (order.number, order.price, order.quantity)).collect();
    assert_eq!(open, [(last, 12_000, 3)]);
    drop(node);
    master.with(|master, _| master.stop());
    let td = td.join().unwrap();
    assert_eq!((td.orders, td.rejected, td.lost, td.foreign), (8, 0, 0, 0));
    stop.store(true, Ordering::Relaxed);
    let done = exchange.join().unwrap();
    assert_eq!(
        (done.orders, done.accepted, done.rejected, done.refused_total),
        (3, 3, 0, 0),
        "{:?}",
        done.refused
    );
}

/// The orders of a halted strategy that rest at the exchange are cancelled there.
#[test]
fn a_halt_cancels_at_the_exchange() {
    let (address, stop, exchange) = start(true);
    let master: MasterThread = master();
    let td = start_td(&master, address);
    let both = Strategies::Only(vec![0, 1]);
    let mut node = master.join(&strategy::join("s0", "strategy", both, &[1], 1 << 16, Wait::Parked));
    master.begin();
    let mut numbers = strategy::numbers_of(&node, 0);
    let accepted = answers(&mut node, &mut numbers, 3, &mut |orders| {
        for price in [10_000, 11_000, 12_000] {
            orders.send(1, Side::Buy, price, 5).unwrap();
        }
    });
    assert!(accepted.iter().all(|(outcome, ..)| *outcome == Outcome::Accepted), "{accepted:?}");
    let ledger = Ledger::look(area(&master, AREA)).unwrap();
    let halt = |strategy, is_halted| {
        ledger.set_halted(strategy, is_halted);
        master.with(|master, _| master.command(TD_STREAM, HALT)).unwrap();
    };
    halt(Some(1), true);
    thread::sleep(Duration::from_millis(50));
    assert_eq!(ledger.open_orders(0).unwrap().len(), 3, "another strategy's");
    halt(Some(0), true);
    let mut cancelled = answers(&mut node, &mut numbers, 3, &mut |_| {});
    cancelled.sort_by_key(|(_, price, _)| *price);
    assert_eq!(cancelled, [10_000, 11_000, 12_000].map(|price| (Outcome::Cancelled, price, 5)));
    // td completes an order once its answer is published.
    let start = Instant::now();
    while !ledger.open_orders(0).unwrap().is_empty() {
        assert!(start.elapsed() < LONG, "{:?}", ledger.open_orders(0));
        thread::sleep(Duration::from_millis(1));
    }
    let refused =
        answers(&mut node, &mut numbers, 1, &mut |orders| _ = orders.send(1, Side::Buy, 9_000, 5).unwrap());
    assert_eq!(refused[0].0, Outcome::Rejected(Reject::Halted));
    halt(None, false);
    let resumed =
        answers(&mut node, &mut numbers, 1, &mut |orders| _ = orders.send(1, Side::Buy, 9_000, 5).unwrap());
    assert_eq!(resumed[0].0, Outcome::Accepted);
    drop(node);
    master.with(|master, _| master.stop());
    td.join().unwrap();
    stop.store(true, Ordering::Relaxed);
    let done = exchange.join().unwrap();
    assert_eq!((done.orders, done.refused_total), (4, 0), "{:?}", done.refused);
}
