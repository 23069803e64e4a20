//! td with an exchange of another process: orders leave over a connection, and its answers become td's.

use super::td::{Gateway, taken_over};
use crate::{
    run::tally::Tally,
    stages::Stage,
    td::{Decision, ReadOrder},
    wire::{Connection, Flight, Flights, GatewayAddress, Trip},
};
use lowlat_feed::gateway::{Kind, Message};
use lowlat_ipc::interest::SUBSCRIBERS_MAX;
use lowlat_node::{
    Memory, Publisher, Refusal,
    clock::now_ns,
    records::{OrderAction, Origin, Outcome, Reject, Side},
};
use lowlat_pipeline::GatewayFigures;

/// Messages of the exchange that are handled before the next orders.
const MESSAGES_PER_POLL: u32 = 64;

/// The connection with its orders in flight.
pub(super) struct Remote {
    pub(super) connection: Connection,
    flights: Flights,
    figures: GatewayFigures,
    /// Sequence of the last order read, + 1, by the writer of its stream.
    read: Box<[u64]>,
    /// Reason why the connection was lost, until it is reported to the master.
    pub(super) said: Option<String>,
    /// Orders of halted strategies may be open at the exchange.
    is_halting: bool,
}

impl Remote {
    /// Logs on. `figures` are those of a previous process.
    pub(super) fn open(address: GatewayAddress, mut figures: GatewayFigures) -> Result<Self, Refusal> {
        let connection = Connection::open(address)?;
        figures.is_loopback = connection.is_loopback;
        figures.is_same_machine = connection.is_same_machine;
        figures.exchange_cpu = connection.exchange_cpu;
        Ok(Self {
            connection,
            flights: Flights::new(),
            figures,
            read: vec![0; SUBSCRIBERS_MAX as usize].into(),
            said: None,
            is_halting: false,
        })
    }

    /// Tells the exchange that quotes may be published.
    pub(super) fn start(&mut self) {
        self.connection.send(&Message::of(Kind::Start), None);
    }

    /// The master has halted strategies: their orders are cancelled at the exchange.
    pub(super) fn halt(&mut self) {
        self.is_halting = true;
    }

    /// Asks the exchange to cancel the open orders of halted strategies. What cannot be sent now follows with the next call.
    #[cold]
    fn cancel_halted(&mut self, is_halted: impl Fn(u32) -> bool) {
        let mut first = 0;
        while let Some((changes, order)) = self.flights.to_halt(first, &is_halted) {
            let Some(id) = self.flights.next() else { return };
            let Flight { mut taken, read_ns, .. } = order;
            let message = Message {
                strategy: taken.stamp.source,
                id,
                number: taken.order.number,
                instrument: taken.stamp.instrument,
                quote: changes,
                ..Message::of(Kind::Cancel)
            };
            if !self.connection.send(&message, None) {
                return;
            }
            taken.order.action = OrderAction::Cancel;
            self.flights.push(Flight {
                taken,
                read_ns,
                is_accepted: false,
                left: 0,
                changes,
                is_halted: true,
            });
            self.flights.get(changes).into_iter().for_each(|order| order.is_halted = true);
            first = changes + 1;
        }
        self.is_halting = false;
    }

    /// True if answers or stamps are outstanding.
    pub(super) fn is_busy(&self) -> bool {
        self.connection.lost().is_none() && (self.flights.count() > 0 || self.connection.has_trips())
    }

    /// Enters the figures in the run's counts.
    pub(super) fn show(&mut self, tally: &Tally<Memory>) {
        self.figures.is_lost |= self.connection.lost().is_some();
        self.figures.unstamped += std::mem::take(&mut self.connection.unstamped);
        tally.set_gateway(&self.figures);
    }

    /// Number of records of this writer's stream that are missing before this one.
    fn missing(&mut self, writer: u32, sequence: u64) -> u64 {
        let place = usize::try_from(writer).ok().and_then(|at| self.read.get_mut(at));
        let Some(next) = place else { return 0 };
        let missing = if *next == 0 { 0 } else { sequence.saturating_sub(*next) };
        *next = sequence.saturating_add(1);
        missing
    }

    /// Sends a request; `changes` is the order that it changes, by its number on the connection. Returns false if that is
    /// impossible.
    #[inline]
    fn send(&mut self, taken: &ReadOrder, changes: u64, read_ns: u64) -> bool {
        let Some(id) = self.flights.next() else { return false };
        let ReadOrder { stamp, order, .. } = taken;
        let kind = match order.action {
            OrderAction::New => Kind::Order,
            OrderAction::Cancel => Kind::Cancel,
            OrderAction::Replace => Kind::Replace,
        };
        let message = Message {
            is_sell: order.side == Side::Sell,
            strategy: stamp.source,
            id,
            number: order.number,
            price: order.price,
            quantity: order.quantity,
            instrument: stamp.instrument,
            quote: if changes > 0 { changes } else { order.origin.sequence },
            code: order.order_type as u8,
            ..Message::of(kind)
        };
        let trip = Trip {
            origin: order.origin,
            packet_ns: order.scheduled_ns,
            published_ns: stamp.trigger,
            received_ns: order.received_ns,
            written_ns: stamp.generated,
            read_ns,
            send_ns: now_ns(),
            ..Trip::default()
        };
        let is_sent = self.connection.send(&message, Some(trip));
        if is_sent {
            let left = order.quantity;
            self.flights.push(Flight {
                taken: *taken,
                read_ns,
                is_accepted: false,
                left,
                changes,
                is_halted: false,
            });
            self.figures.sent += u64::from(changes == 0);
        }
        is_sent
    }
}

/// Answer of the exchange to an order.
enum Answered {
    Settled(Flight, Result<(), Reject>),
    Filled(Flight, u32, i64, bool),
    /// What is left of an order is cancelled, without a request of its strategy.
    Lapsed(Flight),
    /// The order that a halt would cancel was filled or cancelled before.
    Nothing,
}

impl Remote {
    /// Interprets a message of the exchange. The error is what is wrong with it.
    fn answered(&mut self, message: &Message) -> Result<Answered, String> {
        let Message { id, quantity, price, .. } = *message;
        let flight =
            self.flights.get(id).ok_or_else(|| format!("it answered order {id}, which is not in flight"))?;
        if flight.changes > 0 {
            let flight = *flight;
            self.flights.remove(id);
            if flight.is_halted {
                return self.halted(&flight, message);
            }
            return Ok(Answered::Settled(flight, self.changed(&flight, message)?));
        }
        match message.kind {
            Kind::Accepted if !flight.is_accepted => {
                flight.is_accepted = true;
                let flight = *flight;
                self.figures.accepted += 1;
                Ok(Answered::Settled(flight, Ok(())))
            }
            Kind::Rejected if !flight.is_accepted => {
                let flight = *flight;
                self.flights.remove(id);
                self.figures.rejected += 1;
                Ok(Answered::Settled(flight, Err(reason_of(message))))
            }
            Kind::Cancelled if flight.is_accepted => {
                let flight = *flight;
                self.flights.remove(id);
                Ok(Answered::Lapsed(flight))
            }
            Kind::Filled if flight.is_accepted && (1..=flight.left).contains(&quantity) => {
                flight.left -= quantity;
                let flight = *flight;
                if flight.left == 0 {
                    self.flights.remove(id);
                }
                self.figures.fills += 1;
                Ok(Answered::Filled(flight, quantity, price, flight.left == 0))
            }
            kind => Err(unfitting(kind, id)),
        }
    }

    /// Interprets the answer to a halt's request.
    fn halted(&mut self, request: &Flight, message: &Message) -> Result<Answered, String> {
        let cancelled = match message.kind {
            Kind::NotChanged => return Ok(Answered::Nothing),
            Kind::Cancelled => self.flights.remove(request.changes),
            _ => None,
        };
        cancelled.map(Answered::Lapsed).ok_or_else(|| unfitting(message.kind, message.id))
    }

    /// Interprets the answer to a request to change an order.
    fn changed(&mut self, request: &Flight, message: &Message) -> Result<Result<(), Reject>, String> {
        let wanted = request.taken.order;
        let order = self.flights.get(request.changes).filter(|order| order.is_accepted);
        match (message.kind, wanted.action, order) {
            (Kind::NotChanged, ..) => return Ok(Err(reason_of(message))),
            (Kind::Cancelled, OrderAction::Cancel, Some(_)) => _ = self.flights.remove(request.changes),
            (Kind::Replaced, OrderAction::Replace, Some(order)) if wanted.quantity > order.filled() => {
                order.left = wanted.quantity - order.filled();
                (order.taken.order.price, order.taken.order.quantity) = (wanted.price, wanted.quantity);
            }
            (kind, ..) => return Err(unfitting(kind, message.id)),
        }
        Ok(Ok(()))
    }
}

fn unfitting(kind: Kind, id: u64) -> String {
    format!("it sent {kind:?} for order {id}, which does not fit what it sent before")
}

fn reason_of(message: &Message) -> Reject {
    match Outcome::of(u64::from(message.code)) {
        Ok(Outcome::Rejected(reject) | Outcome::NotChanged(reject)) => reject,
        _ => Reject::NoExchange,
    }
}

impl Gateway {
    /// Checks an order and sends it to the exchange. An order that cannot be sent is rejected.
    #[inline]
    pub(super) fn forward(
        &mut self,
        publisher: &mut Publisher,
        taken: &ReadOrder,
        read_ns: u64,
    ) -> Result<(), Refusal> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        if self.exchange.ledger().last_sequence(taken.writer).is_some_and(|last| taken.sequence <= last) {
            self.done.known += 1;
            return Ok(());
        }
        let ReadOrder { stamp, order, .. } = taken;
        let in_flight =
            if self.is_limited { remote.flights.exposure(stamp.source, stamp.instrument) } else { (0, 0) };
        let changed = match order.action {
            OrderAction::New => None,
            OrderAction::Cancel | OrderAction::Replace => remote.flights.find(stamp.source, order.number),
        };
        let before = changed.map(|(_, order)| (order.taken.order.side, order.filled(), order.left));
        let verdict = self.exchange.check(taken, in_flight, before, read_ns);
        let is_sent = verdict.is_ok() && remote.send(taken, changed.map_or(0, |(id, _)| id), read_ns);
        // From here on the order is on its way.
        self.done.missing += remote.missing(taken.writer, taken.sequence);
        remote.figures.unsent += u64::from(verdict.is_ok() && !is_sent);
        self.count(read_ns, stamp, order);
        match verdict {
            Ok(()) if is_sent => Ok(()),
            verdict => self.settle(publisher, taken, verdict.and(Err(Reject::NoExchange)), read_ns),
        }
    }

    fn settle(
        &mut self,
        publisher: &mut Publisher,
        taken: &ReadOrder,
        verdict: Result<(), Reject>,
        read_ns: u64,
    ) -> Result<(), Refusal> {
        match self.exchange.settle(self.td, taken, verdict, read_ns, publisher.published()) {
            Decision::Answers(pending) => self.answer(publisher, &pending),
            _ => Err(taken_over()),
        }
    }

    /// Handles what the exchange has sent, and send stamps. Returns the number of messages.
    #[inline(never)]
    pub(super) fn poll_remote(&mut self, publisher: &mut Publisher) -> Result<usize, Refusal> {
        let mut count = 0;
        for _ in 0..MESSAGES_PER_POLL {
            let Some(remote) = &mut self.remote else { return Ok(0) };
            let Some(message) = remote.connection.next() else { break };
            count += 1;
            match remote.answered(&message) {
                Ok(Answered::Settled(flight, verdict)) => {
                    // It was sent before the halt.
                    remote.is_halting |= self.exchange.ledger().is_halted(flight.taken.stamp.source);
                    self.settle(publisher, &flight.taken, verdict, flight.read_ns)?;
                }
                Ok(Answered::Nothing) => {}
                Ok(Answered::Filled(Flight { taken, read_ns, .. }, quantity, price, is_last)) => {
                    let (td, next) = (self.td, publisher.published());
                    match self.exchange.fill(td, &taken, (quantity, price), is_last, read_ns, next) {
                        Decision::Answers(pending) => self.publish(publisher, &pending)?,
                        _ => return Err(taken_over()),
                    }
                }
                Ok(Answered::Lapsed(Flight { taken, read_ns, left, .. })) => {
                    let (td, next) = (self.td, publisher.published());
                    match self.exchange.lapse(td, &taken, left, read_ns, next) {
                        Decision::Answers(pending) => self.publish(publisher, &pending)?,
                        _ => return Err(taken_over()),
                    }
                }
                Err(why) => remote.connection.lose(&why),
            }
        }
        if let Some(remote) = self.remote.as_mut().filter(|remote| remote.is_halting) {
            remote.cancel_halted(|strategy| self.exchange.ledger().is_halted(strategy));
        }
        self.take_stamps();
        self.give_up(publisher)?;
        if let (Some(remote), Some(tally)) = (&mut self.remote, &self.tally) {
            remote.show(tally);
        }
        Ok(count)
    }

    fn take_stamps(&mut self) {
        let Some(remote) = &mut self.remote else { return };
        let record = |stage, ns| self.stages.iter().for_each(|stages| stages.record(stage, ns));
        while let Some((trip, stamp_ns)) = remote.connection.next_stamp() {
            let wire_ns = remote.connection.clock.to_pipeline_ns(stamp_ns);
            let sent = (Stage::SendToWire, wire_ns.saturating_sub(trip.send_ns));
            let Origin { packet_ns, read_after_ns, .. } = trip.origin;
            if packet_ns == 0 {
                record(sent.0, sent.1);
                continue;
            }
            let read_after_ns = u64::from(read_after_ns);
            let parts = [
                (Stage::PacketToRead, read_after_ns),
                (Stage::ReadToPublished, trip.published_ns.saturating_sub(trip.packet_ns + read_after_ns)),
                (Stage::PublishedToStrategy, trip.received_ns.saturating_sub(trip.published_ns)),
                (Stage::Strategy, trip.written_ns.saturating_sub(trip.received_ns)),
                (Stage::OrderToTd, trip.read_ns.saturating_sub(trip.written_ns)),
                (Stage::TdToSend, trip.send_ns.saturating_sub(trip.read_ns)),
                sent,
            ];
            // Both stamps are the kernel's: the whole does not depend on any conversion.
            let whole_ns = stamp_ns.saturating_sub(packet_ns);
            let sum_ns = parts.iter().map(|(_, ns)| *ns).sum();
            remote.figures.measured += 1;
            remote.figures.adding_up += u64::from(GatewayFigures::adds_up(sum_ns, whole_ns));
            for (stage, ns) in parts.into_iter().chain([(Stage::TickToTrade, whole_ns)]) {
                record(stage, ns);
            }
        }
    }

    /// Rejects the orders in flight of a lost connection.
    fn give_up(&mut self, publisher: &mut Publisher) -> Result<(), Refusal> {
        loop {
            let Some(remote) = &mut self.remote else { return Ok(()) };
            let Some(why) = remote.connection.lost() else { return Ok(()) };
            if !remote.figures.is_lost {
                remote.said =
                    Some(format!("the connection to the exchange is lost ({why}); orders are rejected"));
                remote.figures.is_lost = true;
                remote.connection.forget_trips();
            }
            let Some(flight) = remote.flights.pop() else { return Ok(()) };
            if flight.changes > 0 && flight.is_halted {
                continue;
            }
            remote.figures.lost_in_flight += 1;
            if !flight.is_accepted {
                self.settle(publisher, &flight.taken, Err(Reject::NoExchange), flight.read_ns)?;
            }
        }
    }
}
