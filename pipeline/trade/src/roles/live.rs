//! md with a feed: publishes the quotes that arrive in packets.

use super::{hear, md};
use crate::wire::quote_of;
use crate::{
    run::tally::{self, Tally},
    scenario::symbols_of,
    wire::{FeedSocket, Format, Packet, ReceiverOptions, WireClock},
};
use lowlat_feed::{
    Head, itch,
    quotes::{self, FeedQuote},
    sequence::{Counts, Tracker},
};
use lowlat_node::{
    Memory, Node, Refusal, Wait,
    clock::now_ns,
    records::{Origin, Quote},
};
use lowlat_pipeline::FeedFigures;

/// Datagrams between two polls of the master's messages, and empty polls of a spinning md.
const DATAGRAMS_PER_POLL: u32 = 64;
/// Time that md waits for the feed's end after its duration.
const END_NS_MAX: u64 = 500_000_000;

/// Options of md with a feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOptions {
    pub receiver: ReceiverOptions,
    /// Instruments of ITCH; `None` for a feed of quotes.
    pub symbols: Option<itch::Symbols>,
    /// Instruments of the run: numbers below this.
    pub instruments: u32,
    /// Time that it publishes, from the first quote, unless the feed ends before; ns.
    pub duration_ns: u64,
}

impl LiveOptions {
    /// Options whose symbols are these; empty: the first ones of the feed. `None` if one is no symbol.
    pub fn with_symbols(self, symbols: &[String]) -> Option<Self> {
        let symbols = match self.receiver.address.format {
            Format::Quotes => None,
            Format::Itch => Some(symbols_of(symbols, self.instruments)?),
        };
        Some(Self { symbols, ..self })
    }
}

/// Publishes the feed's quotes from the begin message on, until the feed ends, the duration has passed, or it is
/// stopped. Quotes before the begin message only show the position in the sequence.
pub fn run(node: Node, mut socket: FeedSocket, options: &LiveOptions) -> Result<(), Refusal> {
    let mut live = Live::new(node, options);
    while !live.is_over() {
        if live.until_poll == 0 {
            live.hear();
        }
        match socket.receive().map_err(|error| {
            Refusal::new(format!(
                "cannot receive the feed: {error}\nhint: check that its interface is still there"
            ))
        })? {
            Some(packet) => live.take(&packet)?,
            None => live.idle(options.receiver.wait),
        }
    }
    live.end()
}

struct Live {
    node: Node,
    tally: Option<Tally<Memory>>,
    clock: WireClock,
    tracker: Tracker,
    /// Follows the sequence before the begin message.
    before: Tracker,
    beside: FeedFigures,
    /// Books of ITCH; `None` for a feed of quotes.
    books: Option<itch::Books>,
    unapplied_before: u64,
    format: Format,
    instruments: u32,
    duration_ns: u64,
    /// When it ends; `None` before the begin message.
    until_ns: Option<u64>,
    has_published: bool,
    is_stopped: bool,
    until_poll: u32,
}

impl Live {
    fn new(node: Node, options: &LiveOptions) -> Self {
        let tally = node.area(tally::MD_AREA).cloned().and_then(Tally::new);
        // Counts of a previous process of md.
        let (counts, beside) = tally.as_ref().map(Tally::feed).unwrap_or_default();
        Self {
            node,
            tally,
            clock: WireClock::new(),
            tracker: Tracker::resumed(counts),
            before: Tracker::default(),
            beside,
            books: options.symbols.clone().map(itch::Books::new),
            unapplied_before: 0,
            format: options.receiver.address.format,
            instruments: options.instruments,
            duration_ns: options.duration_ns,
            until_ns: None,
            has_published: false,
            is_stopped: false,
            until_poll: 0,
        }
    }

    fn is_over(&self) -> bool {
        self.is_stopped || self.tracker.counts().ended > 0
    }

    /// Handles messages of the master, and sends a heartbeat.
    fn hear(&mut self) {
        self.until_poll = DATAGRAMS_PER_POLL;
        let now_ns = now_ns();
        self.node.wait(Some(now_ns));
        let (may_begin, must_stop) = hear(&mut self.node);
        if may_begin && self.until_ns.is_none() {
            self.until_ns = Some(now_ns.saturating_add(self.duration_ns).saturating_add(END_NS_MAX));
            if self.tracker.counts().sessions == 0 {
                let Counts { sessions, session, next, .. } = *self.before.counts();
                self.tracker = Tracker::resumed(Counts { sessions, session, next, ..Counts::default() });
            }
        }
        let before = self.clock.steps;
        self.clock.check();
        self.beside.clock_steps += self.clock.steps - before;
        self.is_stopped |= must_stop || self.until_ns.is_some_and(|until_ns| now_ns >= until_ns);
    }

    fn idle(&mut self, wait: Wait) {
        if wait == Wait::Fast {
            self.until_poll = self.until_poll.saturating_sub(1);
            self.node.rehearse(now_ns(), u64::MAX, &mut |_, _| ());
            lowlat_ipc::relax();
        } else {
            self.until_poll = 0;
        }
    }

    #[inline]
    fn take(&mut self, packet: &Packet<'_>) -> Result<(), Refusal> {
        self.until_poll = self.until_poll.saturating_sub(1);
        let read_ns = now_ns();
        let is_stamped = packet.stamp_ns > 0;
        let packet_ns =
            if is_stamped { self.clock.to_pipeline_ns(packet.stamp_ns).min(read_ns) } else { read_ns };
        let read_after_ns = u32::try_from(read_ns - packet_ns).unwrap_or(u32::MAX);
        let origin = Origin { packet_ns: packet.stamp_ns, sequence: 0, read_after_ns };
        let is_well_formed = match self.format {
            Format::Quotes => self.take_quotes(packet, &origin, packet_ns)?,
            Format::Itch => self.take_itch(packet, &origin, packet_ns)?,
        };
        if self.until_ns.is_none() {
            return Ok(());
        }
        if !is_well_formed {
            self.tracker.malformed(packet.drops);
        }
        self.beside.unstamped += u64::from(!is_stamped);
        self.beside.over_loopback += u64::from(packet.is_loopback);
        self.tally.iter().for_each(|tally| tally.set_feed(self.tracker.counts(), &self.beside));
        Ok(())
    }

    /// Publishes the quotes of a datagram that arrived then. Returns whether it is well-formed.
    #[inline]
    fn take_quotes(&mut self, packet: &Packet<'_>, origin: &Origin, packet_ns: u64) -> Result<bool, Refusal> {
        let Ok((head, quotes)) = quotes::decode(packet.bytes) else { return Ok(false) };
        if let Some(skipped) = self.enter(&head, packet.drops) {
            for (number, quote) in (head.sequence..).zip(quotes).skip(usize::from(skipped)) {
                self.publish(Origin { sequence: number, ..*origin }, packet_ns, &quote)?;
            }
        }
        Ok(true)
    }

    /// The same for the quotes that the messages of a datagram make.
    fn take_itch(&mut self, packet: &Packet<'_>, origin: &Origin, packet_ns: u64) -> Result<bool, Refusal> {
        let Ok((head, messages)) = itch::decode(packet.bytes) else { return Ok(false) };
        let has_begun = self.until_ns.is_some();
        let skipped = self.enter(&head, packet.drops).unwrap_or(0);
        for (number, message) in (head.sequence..).zip(messages).skip(usize::from(skipped)) {
            let Ok(message) = itch::parse(message) else { return Ok(false) };
            // Before the begin message, the books are filled and no quote is published.
            if let Some(quote) = self.books.as_mut().and_then(|books| books.apply(&message))
                && has_begun
            {
                self.publish(Origin { sequence: number, ..*origin }, packet_ns, &quote)?;
            }
        }
        let unapplied = self.books.as_ref().map_or(0, itch::Books::unapplied);
        self.beside.unapplied += unapplied.saturating_sub(self.unapplied_before);
        self.unapplied_before = unapplied;
        Ok(true)
    }

    /// Returns how many of the first messages to skip; `None` before the begin message.
    #[inline]
    fn enter(&mut self, head: &Head, drops: u32) -> Option<u16> {
        if self.until_ns.is_none() {
            self.before.enter(head, drops);
            return None;
        }
        Some(self.tracker.enter(head, drops))
    }

    #[inline]
    fn publish(&mut self, origin: Origin, packet_ns: u64, quote: &FeedQuote) -> Result<(), Refusal> {
        let instrument = quote.instrument;
        if instrument >= self.instruments {
            self.beside.foreign += 1;
            return Ok(());
        }
        let quote = Quote { origin, ..quote_of(quote, packet_ns) };
        let generated = md::publish(&mut self.node, instrument, &quote)?;
        self.beside.published += 1;
        self.tally.iter().for_each(|tally| tally.published(generated));
        if !self.has_published {
            self.has_published = true;
            self.until_ns = Some(generated.saturating_add(self.duration_ns).saturating_add(END_NS_MAX));
        }
        Ok(())
    }

    fn end(self) -> Result<(), Refusal> {
        if let Some(tally) = &self.tally {
            tally.set_scheduled(self.beside.published);
            tally.set_feed(self.tracker.counts(), &self.beside);
        }
        self.node.result(())
    }
}
