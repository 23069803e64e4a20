//! A simulated exchange in a separate process: publishes a feed at due times, and answers orders.
//!
//! Two threads: one publishes, the other serves the connections. It also measures the pipeline from outside, in its own
//! clock: from the send of a quote until the order that names it was read.

mod publisher;
mod server;

use super::{FeedAddress, GatewayAddress, refused};
use crate::{
    md::Feed,
    scenario::{Speed, not_itch, open, read_all, unreadable},
    td::{Limits, Matching, Rules},
};
use lowlat_feed::itch::{FileError, Messages, parse};
use lowlat_node::Refusal;
use lowlat_pipeline::ExchangeDocument;
use std::{
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

/// Quotes whose send time is known, a power of two: the latest ones.
const SENT_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct ExchangeOptions {
    /// Address to which it publishes; `None`: it publishes nothing.
    pub feed: Option<FeedAddress>,
    /// Name or address of the interface on which the group is sent; `None`: that of the route.
    pub interface: Option<String>,
    /// Address at which it accepts orders; `None`: it accepts none, and publishes at once.
    pub gateway: Option<GatewayAddress>,
    pub content: ExchangeFeed,
    /// Speed of messages of ITCH, as a multiple of the recorded one.
    pub speed: Speed,
    /// Limit orders stay open, so that clients can change them; else orders are filled at once.
    pub has_no_fills: bool,
    /// Spins until a quote is due; else it sleeps, and sends what is due together.
    pub is_spinning: bool,
}

/// Content of an exchange's feed.
#[derive(Debug)]
pub enum ExchangeFeed {
    Quotes(Feed),
    Itch(ItchMessages),
}

/// Messages of ITCH in memory, with their times.
#[derive(Debug, Clone, Default)]
pub struct ItchMessages {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    times: Vec<u64>,
}

/// Most messages of a file: all of them are in memory.
const MESSAGES_MAX: usize = 20_000_000;
/// Instruments of orders for a feed of ITCH, whose stocks td numbers.
const ITCH_INSTRUMENTS: u32 = 1 << 16;

impl ItchMessages {
    /// Reads the messages of a capture, whose channel may have to be named, or of a plain file, up to a limit. Gaps of
    /// a capture are left out. Also returns doubts about the messages, one sentence each.
    pub fn read(path: &Path, channel: Option<&str>) -> Result<(Self, Vec<String>), Refusal> {
        let wrong = |error| unreadable(path, &error);
        let (bytes, cut) = open(path).and_then(read_all).map_err(wrong)?;
        let (mut read, mut first_ns) = (Self::default(), None);
        let found = Messages { bytes: &bytes, channel }.each(&mut |message| {
            let time_ns = parse(message).map_or(0, |message| message.time_ns);
            let after_ns = time_ns.saturating_sub(*first_ns.get_or_insert(time_ns));
            read.bytes.extend_from_slice(message);
            read.ends.push(read.bytes.len());
            read.times.push(after_ns.max(read.times.last().copied().unwrap_or(0)));
            read.ends.len() < MESSAGES_MAX
        });
        let wrong = |error: FileError| not_itch(path, &error.to_string());
        let found = found.map_err(wrong)?;
        Ok((read, found.gaps().into_iter().chain(found.doubts()).chain(cut).collect()))
    }

    fn get(&self, number: u32) -> &[u8] {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(at).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }
}

/// An event of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeEvent {
    /// It accepts orders at this address.
    Listens(SocketAddr),
    /// It publishes from now on.
    Starts,
}

/// State that both threads share.
struct Shared {
    /// When each quote was sent, by its sequence number.
    sent: Box<[AtomicU64]>,
    /// The first client has asked for quotes.
    has_started: AtomicBool,
    /// All messages of the feed are published.
    is_published: AtomicBool,
}

impl Shared {
    fn place(&self, sequence: u64) -> Option<&AtomicU64> {
        self.sent.get(usize::try_from(sequence % SENT_MAX as u64).unwrap_or(0))
    }

    fn raise(flag: &AtomicBool) {
        // Pairs with the acquire in `is_raised`.
        flag.store(true, Ordering::Release);
    }

    fn is_raised(flag: &AtomicBool) -> bool {
        // Pairs with the release in `raise`.
        flag.load(Ordering::Acquire)
    }
}

/// Runs an exchange until everything is published and its clients have left, or until `stop` is raised. The document lacks
/// its start, its labels and whether it was interrupted.
pub fn run(
    options: ExchangeOptions,
    stop: &AtomicBool,
    on_event: &(dyn Fn(&ExchangeEvent) + Sync),
) -> Result<ExchangeDocument, Refusal> {
    let ExchangeOptions { feed, interface, gateway, content, speed, has_no_fills, is_spinning } = options;
    let shared = Shared {
        sent: (0..SENT_MAX).map(|_| AtomicU64::new(0)).collect(),
        has_started: AtomicBool::new(gateway.is_none()),
        is_published: AtomicBool::new(false),
    };
    let (quotes, messages) = match content {
        ExchangeFeed::Quotes(quotes) => (quotes, None),
        ExchangeFeed::Itch(messages) => {
            (Feed::timed(messages.times.as_slice().into(), speed), Some(messages))
        }
    };
    let instruments = if messages.is_some() { ITCH_INSTRUMENTS } else { quotes.instruments() };
    let matching = Matching::AtOnce(u32::from(!has_no_fills));
    let rules = Rules { instruments, matching, limits: Limits::default() };
    let listener = gateway.map(server::listen).transpose()?;
    if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()?.as_socket()) {
        on_event(&ExchangeEvent::Listens(address));
    }
    let publisher = publisher::FeedPublisher::open(feed, interface.as_deref(), messages)?;
    thread::scope(|scope| {
        let serving = thread::Builder::new()
            .name("lowlat-orders".to_owned())
            .spawn_scoped(scope, || server::serve(listener, &rules, &shared, stop))
            .map_err(refused("start a thread".to_owned(), "end other processes"))?;
        let ExchangeDocument { published, datagrams, published_s, behind, late_ns_max, .. } =
            publisher.run(quotes, &shared, is_spinning, stop, on_event);
        Shared::raise(&shared.is_published);
        let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(ExchangeDocument { published, datagrams, published_s, behind, late_ns_max, ..served })
    })
}
