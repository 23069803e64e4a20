//! The thread that publishes.

use super::{ExchangeEvent, ItchMessages, Shared};
use crate::wire::in_feed;
use crate::{
    md::{DueQuote, Feed, Pacer, PacerStep},
    wire::{FeedAddress, receiver::interface_of, refused},
};
use lowlat_feed::{
    Content, DATAGRAM_BYTES_MAX, Head, itch,
    quotes::{QUOTES_MAX, write_head, write_quote},
};
use lowlat_node::{
    Refusal,
    clock::{now_ns, read_ns, sleep_until},
};
use lowlat_pipeline::ExchangeDocument;
use rustix::time::ClockId;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::{
    io,
    net::SocketAddr,
    num::NonZeroU32,
    sync::atomic::{AtomicBool, Ordering},
};

/// Time between two datagrams without quotes.
const HEARTBEAT_NS: u64 = 100_000_000;
/// Time from the start to the first quote: md has begun by then.
const LEAD_NS: u64 = 200_000_000;
/// Number of announcements of the end: a datagram may be lost.
const ENDS: u32 = 5;
const ENDS_APART_NS: u64 = 20_000_000;
/// Longest sleep, so that a stop is seen.
const SLEEP_NS_MAX: u64 = 50_000_000;

pub(super) struct FeedPublisher {
    socket: Option<Socket>,
    /// Messages of ITCH, which are published in place of quotes.
    messages: Option<ItchMessages>,
    bytes: [u8; DATAGRAM_BYTES_MAX],
    /// Quotes or messages in the datagram that is being filled.
    filled: u16,
    /// Its bytes, for messages of ITCH.
    length: usize,
    session: u64,
    /// Sequence number of the next quote.
    next: u64,
    datagrams: u64,
    first_ns: u64,
    last_ns: u64,
}

impl FeedPublisher {
    pub(super) fn open(
        feed: Option<FeedAddress>,
        interface: Option<&str>,
        messages: Option<ItchMessages>,
    ) -> Result<Self, Refusal> {
        let hint = "check the address, and the interface (--feed-interface)";
        let socket =
            feed.map(|feed| open(feed.to, interface).map_err(refused(format!("publish to {feed}"), hint)));
        Ok(Self {
            socket: socket.transpose()?,
            messages,
            length: 0,
            bytes: [0; DATAGRAM_BYTES_MAX],
            filled: 0,
            // Differs from that of the exchange before.
            session: read_ns(ClockId::Realtime),
            next: 1,
            datagrams: 0,
            first_ns: 0,
            last_ns: 0,
        })
    }

    pub(super) fn run(
        mut self,
        quotes: Feed,
        shared: &Shared,
        is_spinning: bool,
        stop: &AtomicBool,
        on_event: &(dyn Fn(&ExchangeEvent) + Sync),
    ) -> ExchangeDocument {
        // Relaxed: a lone flag.
        let is_stopped = || stop.load(Ordering::Relaxed);
        while !Shared::is_raised(&shared.has_started) && !is_stopped() {
            self.announce(Content::Heartbeat);
            sleep_until(now_ns() + HEARTBEAT_NS / 2);
        }
        on_event(&ExchangeEvent::Starts);
        let mut pacer = Pacer::new(quotes, now_ns() + LEAD_NS);
        let mut announced_ns = 0;
        while !is_stopped() {
            let now_ns = now_ns();
            match pacer.step(now_ns) {
                PacerStep::Publish(due) => self.fill(&due, shared),
                PacerStep::WaitUntil(then_ns) => {
                    // All that is due goes in one datagram.
                    self.send(shared);
                    if now_ns >= announced_ns + HEARTBEAT_NS && then_ns > now_ns + HEARTBEAT_NS / 4 {
                        self.announce(Content::Heartbeat);
                        announced_ns = now_ns;
                    }
                    if is_spinning {
                        std::hint::spin_loop();
                    } else {
                        sleep_until(then_ns.min(now_ns + SLEEP_NS_MAX));
                    }
                }
                PacerStep::Done => break,
            }
        }
        self.send(shared);
        for _ in 0..ENDS {
            self.announce(Content::End);
            sleep_until(now_ns() + ENDS_APART_NS);
        }
        let lateness = pacer.lateness();
        ExchangeDocument {
            published: self.next - 1,
            datagrams: self.datagrams,
            published_s: (self.last_ns - self.first_ns) as f64 / 1e9,
            behind: lateness.behind,
            late_ns_max: lateness.max_ns,
            ..ExchangeDocument::default()
        }
    }

    fn fill(&mut self, due: &DueQuote, shared: &Shared) {
        if let Some(messages) = &self.messages {
            let message = messages.get(due.instrument);
            let start = if self.filled == 0 { itch::HEAD_BYTES } else { self.length };
            if let Some(end) = itch::write_message(start, message, &mut self.bytes) {
                self.length = end;
                self.filled += 1;
            } else if self.filled > 0 {
                self.send(shared);
                self.fill(due, shared);
            }
            return;
        }
        write_quote(usize::from(self.filled), &in_feed(&due.quote, due.instrument), &mut self.bytes);
        self.filled += 1;
        if usize::from(self.filled) == QUOTES_MAX {
            self.send(shared);
        }
    }

    /// Sends the quotes of the datagram.
    fn send(&mut self, shared: &Shared) {
        let count = std::mem::take(&mut self.filled);
        if count == 0 {
            return;
        }
        let head = Head { session: self.session, sequence: self.next, content: Content::Messages(count) };
        let length = self.head(&head);
        let now_ns = now_ns();
        for sequence in self.next..self.next + u64::from(count) {
            if let Some(place) = shared.place(sequence) {
                // Pairs with the acquire of the server. The order that names the quote arrives after its send.
                place.store(now_ns, Ordering::Release);
            }
        }
        self.transmit(length);
        self.next += u64::from(count);
        self.datagrams += 1;
        self.first_ns = if self.first_ns == 0 { now_ns } else { self.first_ns };
        self.last_ns = now_ns;
    }

    /// Writes a head, and returns the bytes of the datagram.
    fn head(&mut self, head: &Head) -> usize {
        if self.messages.is_none() {
            return write_head(head, &mut self.bytes);
        }
        let empty = itch::write_head(head, &mut self.bytes);
        if head.count() > 0 { self.length } else { empty }
    }

    fn announce(&mut self, content: Content) {
        let head = Head { session: self.session, sequence: self.next, content };
        let length = self.head(&head);
        self.transmit(length);
    }

    /// A datagram that cannot be sent is lost, as one in a network; its numbers are missing to the receivers.
    fn transmit(&self, length: usize) {
        if let (Some(socket), Some(bytes)) = (&self.socket, self.bytes.get(..length)) {
            socket.send(bytes).ok();
        }
    }
}

fn open(to: SocketAddr, interface: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
    let chosen = interface.map(|name| interface_of(&socket, name)).transpose()?;
    match (to, chosen) {
        (SocketAddr::V4(_), Some(InterfaceIndexOrAddress::Address(address))) => {
            socket.set_multicast_if_v4(&address)?;
        }
        (SocketAddr::V4(_), Some(InterfaceIndexOrAddress::Index(index))) => {
            socket.bind_device_by_index_v4(NonZeroU32::new(index))?;
        }
        (SocketAddr::V6(_), Some(InterfaceIndexOrAddress::Index(index))) => {
            socket.set_multicast_if_v6(index)?;
        }
        (SocketAddr::V6(_), Some(InterfaceIndexOrAddress::Address(_))) => {
            return Err(io::Error::other("an IPv6 group needs the name of an interface"));
        }
        (_, None) => {}
    }
    socket.connect(&to.into())?;
    Ok(socket)
}
