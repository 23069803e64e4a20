//! The thread that serves the connections of td.
//!
//! Its work is bounded whatever clients send. Connections are limited in number; one that has not logged on within a
//! few seconds is closed, as is one that breaks the protocol or does not read its answers. One turn reads a limited
//! number of bytes of each.

use super::Shared;
use crate::{
    td::{Decision, Exchange, ReadOrder, Rules},
    wire::{GatewayAddress, logged_on, refused},
};
use hdrhistogram::Histogram;
use lowlat_feed::gateway::{Kind, MESSAGE_BYTES, Message};
use lowlat_ipc::{region::Heap, stream::Stamp};
use lowlat_node::{
    Refusal,
    clock::now_ns,
    ledger,
    records::{Order, OrderAction, OrderType, Outcome, SCHEMA, Side, kind},
};
use lowlat_pipeline::{ExchangeDocument, StageFigures};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    io::{self, Read, Write},
    sync::atomic::{AtomicBool, Ordering},
};

/// Connections at a time; more are closed at once.
const CLIENTS_MAX: usize = 16;
/// Time that a client has to log on.
const LOGON_NS_MAX: u64 = 5_000_000_000;
/// Time for clients to leave after the last quote.
const LEAVE_NS_MAX: u64 = 5_000_000_000;
/// Maximum bytes of one read.
const INPUT_BYTES: usize = MESSAGE_BYTES * 128;
/// Answers that a client may leave unread.
const OUTPUT_BYTES_MAX: usize = MESSAGE_BYTES * 8192;
/// Longest time between two checks of the flags.
const TURN_NS: i64 = 50_000_000;
/// Maximum number of reasons that are kept.
const REASONS_MAX: usize = 20;
const BACKLOG: i32 = 64;

/// Results of the connections.
struct Served {
    counts: ExchangeDocument,
    quote_to_order: Histogram<u64>,
}

impl Served {
    /// Keeps each reason once, with the first peer that it applied to.
    fn refuse(&mut self, peer: &str, why: &str) {
        let ExchangeDocument { refused, refused_total, .. } = &mut self.counts;
        *refused_total += 1;
        if refused.len() < REASONS_MAX && !refused.iter().any(|known| known.ends_with(why)) {
            refused.push(format!("{peer}: {why}"));
        }
    }

    fn document(self) -> ExchangeDocument {
        ExchangeDocument {
            document: ExchangeDocument::DOCUMENT.to_owned(),
            schema_version: ExchangeDocument::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").to_owned(),
            quote_to_order: StageFigures::of(&self.quote_to_order),
            ..self.counts
        }
    }
}

pub(super) fn listen(address: GatewayAddress) -> Result<Socket, Refusal> {
    let listen = || {
        let socket = Socket::new(Domain::for_address(address.0), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.0.into())?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    listen().map_err(refused(
        format!("accept orders at {address}"),
        "name an address of this host and a free port",
    ))
}

/// Serves until everything is published and all clients have left, or `stop` is raised.
pub(super) fn serve(
    listener: Option<Socket>,
    rules: &Rules,
    shared: &Shared,
    stop: &AtomicBool,
) -> ExchangeDocument {
    let mut served = Served { counts: ExchangeDocument::default(), quote_to_order: crate::stages::empty() };
    let Some(listener) = listener else { return served.document() };
    let mut clients: Vec<ExchangeClient> = Vec::with_capacity(CLIENTS_MAX);
    let mut until_ns = u64::MAX;
    loop {
        if Shared::is_raised(&shared.is_published) && until_ns == u64::MAX {
            until_ns = now_ns() + LEAVE_NS_MAX;
        }
        let is_over = until_ns < u64::MAX && (clients.is_empty() || now_ns() >= until_ns);
        // Relaxed: a lone flag.
        if is_over || stop.load(Ordering::Relaxed) {
            return served.document();
        }
        wait(&listener, &clients);
        accept(&listener, &mut clients, rules, &mut served);
        let now_ns = now_ns();
        clients.retain_mut(|client| match client.turn(now_ns, shared, &mut served) {
            Ok(is_open) => is_open,
            Err(why) => {
                served.refuse(&client.peer, &why);
                false
            }
        });
    }
}

fn wait(listener: &Socket, clients: &[ExchangeClient]) {
    let wanted = |client: &ExchangeClient| {
        if client.output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    };
    let mut polled = Vec::with_capacity(CLIENTS_MAX + 1);
    polled.push(PollFd::new(listener, PollFlags::IN));
    polled.extend(clients.iter().map(|client| PollFd::new(&client.socket, wanted(client))));
    // After a failure, all are tried.
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: TURN_NS })).ok();
}

fn accept(listener: &Socket, clients: &mut Vec<ExchangeClient>, rules: &Rules, served: &mut Served) {
    for _ in 0..CLIENTS_MAX {
        let Ok((socket, peer)) = listener.accept() else { return };
        served.counts.connections += 1;
        let peer = peer.as_socket().map_or_else(|| "a client".to_owned(), |peer| peer.to_string());
        if clients.len() >= CLIENTS_MAX {
            served.refuse(&peer, &format!("{CLIENTS_MAX} clients are connected already"));
            continue;
        }
        match ExchangeClient::new(socket, &peer, rules.clone()) {
            Ok(client) => clients.push(client),
            Err(error) => served.refuse(&peer, &error.to_string()),
        }
    }
}

struct ExchangeClient {
    socket: Socket,
    peer: String,
    accepted_ns: u64,
    has_logged_on: bool,
    exchange: Exchange<Heap>,
    /// Number of its last order.
    last_id: u64,
    input: Box<[u8; INPUT_BYTES]>,
    filled: usize,
    output: Vec<u8>,
}

impl ExchangeClient {
    fn new(socket: Socket, peer: &str, rules: Rules) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let exchange = Exchange::new(Heap::zeroed(ledger::BYTES), 1, rules).map_err(io::Error::other)?;
        Ok(Self {
            socket,
            peer: peer.to_owned(),
            accepted_ns: now_ns(),
            has_logged_on: false,
            exchange,
            last_id: 0,
            input: Box::new([0; INPUT_BYTES]),
            filled: 0,
            output: Vec::new(),
        })
    }

    /// Reads once, answers, and writes what fits. Returns whether the connection stays open.
    fn turn(&mut self, now_ns: u64, shared: &Shared, served: &mut Served) -> Result<bool, String> {
        if !self.has_logged_on && now_ns.saturating_sub(self.accepted_ns) > LOGON_NS_MAX {
            return Err("no logon arrived in time".to_owned());
        }
        let free = self.input.get_mut(self.filled..).unwrap_or_default();
        match self.socket.read(free) {
            Ok(0) if self.filled > 0 => return Err("it ended in the middle of a message".to_owned()),
            Ok(0) => return Ok(false),
            Ok(count) => {
                // One moment for all that has arrived together.
                let read_ns = lowlat_node::clock::now_ns();
                self.filled += count;
                self.take_all(read_ns, shared, served)?;
            }
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(error.to_string()),
        }
        self.flush()?;
        if self.output.len() > OUTPUT_BYTES_MAX {
            return Err("it does not read its answers".to_owned());
        }
        Ok(true)
    }

    fn take_all(&mut self, read_ns: u64, shared: &Shared, served: &mut Served) -> Result<(), String> {
        let mut at = 0;
        while let Some(bytes) = self.input.get(at..self.filled).and_then(<[u8]>::first_chunk) {
            let message = Message::decode(bytes).map_err(|error| error.to_string())?;
            at += MESSAGE_BYTES;
            self.take(&message, read_ns, shared, served)?;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(())
    }

    fn take(
        &mut self,
        message: &Message,
        read_ns: u64,
        shared: &Shared,
        served: &mut Served,
    ) -> Result<(), String> {
        match message.kind {
            Kind::Logon if !self.has_logged_on => {
                self.has_logged_on = true;
                self.answer(&logged_on());
            }
            Kind::Start if self.has_logged_on => Shared::raise(&shared.has_started),
            Kind::Order | Kind::Cancel | Kind::Replace
                if self.has_logged_on && message.id == self.last_id + 1 =>
            {
                self.last_id = message.id;
                self.order(message, read_ns, shared, served)?;
            }
            Kind::Order | Kind::Cancel | Kind::Replace if self.has_logged_on => {
                return Err(format!("found order {}, expected {}", message.id, self.last_id + 1));
            }
            kind => return Err(format!("{kind:?} is unexpected")),
        }
        Ok(())
    }

    fn order(
        &mut self,
        message: &Message,
        read_ns: u64,
        shared: &Shared,
        served: &mut Served,
    ) -> Result<(), String> {
        let (action, refusal, of) = match message.kind {
            Kind::Cancel => (OrderAction::Cancel, Kind::NotChanged, message.quote),
            Kind::Replace => (OrderAction::Replace, Kind::NotChanged, message.quote),
            _ => (OrderAction::New, Kind::Rejected, message.id),
        };
        let order_type = OrderType::of(message.code.into()).map_err(|error| error.to_string())?;
        served.counts.orders += u64::from(action == OrderAction::New);
        // Pairs with the release of the publisher.
        let sent_ns = shared.place(message.quote).map_or(0, |place| place.load(Ordering::Acquire));
        if action == OrderAction::New && message.quote > 0 && sent_ns > 0 {
            served.quote_to_order.saturating_record(read_ns.saturating_sub(sent_ns));
        }
        let side = if message.is_sell { Side::Sell } else { Side::Buy };
        let stamp = Stamp {
            kind: kind::ORDER,
            schema: SCHEMA,
            instrument: message.instrument,
            source: message.strategy,
            generated: read_ns,
            trigger: 0,
            cause: 0,
        };
        let Message { number, price, quantity, id, .. } = *message;
        let order = Order { number, price, quantity, side, action, order_type, ..Order::default() };
        let taken = ReadOrder { writer: 0, sequence: id, stamp, order };
        let Decision::Answers(pending) = self.exchange.begin(0, &taken, read_ns, 0) else {
            served.counts.rejected += 1;
            let code = code(Outcome::Rejected(lowlat_node::records::Reject::UnknownInstrument));
            self.answer(&Message { kind: refusal, code, ..*message });
            return Ok(());
        };
        for (_, answer) in pending.answers() {
            let counts = &mut served.counts;
            let (kind, counted, id) = match answer.outcome {
                Outcome::Accepted => (Kind::Accepted, Some(&mut counts.accepted), message.id),
                Outcome::Filled => (Kind::Filled, Some(&mut counts.fills), of),
                Outcome::Cancelled => (Kind::Cancelled, None, message.id),
                Outcome::Replaced => (Kind::Replaced, None, message.id),
                Outcome::Rejected(_) => (Kind::Rejected, Some(&mut counts.rejected), message.id),
                Outcome::NotChanged(_) => (Kind::NotChanged, None, message.id),
            };
            if let Some(count) = counted {
                *count += 1;
            }
            let code = if kind == refusal { code(answer.outcome) } else { 0 };
            let (price, quantity) = (answer.price, answer.quantity);
            self.answer(&Message { kind, id, code, price, quantity, ..*message });
        }
        self.exchange.finish(&pending);
        Ok(())
    }

    fn answer(&mut self, message: &Message) {
        self.output.extend(message.encode());
    }

    fn flush(&mut self) -> Result<(), String> {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(count) => _ = self.output.drain(..count),
                Err(error) if is_later(&error) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

fn code(outcome: Outcome) -> u8 {
    u8::try_from(outcome.code()).unwrap_or(u8::MAX)
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
