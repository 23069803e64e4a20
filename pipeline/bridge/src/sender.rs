//! The end of the bridge at the originating run: a node that reads its streams, and offers every record.
//!
//! It never blocks publishers. Whatever the carrier does not accept within [`Options::patience_ns`] is dropped
//! and counted, and so is everything while no receiver is connected; readers on the other side learn exactly
//! how much.

use crate::{
    Carrier, Hop, HopFigures, Offered,
    accounts::{Outgoing, SendDecision},
    closed,
    frame::{Body, Frame, FrameHead, HEAD_BYTES, STREAMS_MAX},
};
use lowlat_ipc::stream::Record;
use lowlat_node::{Event, Join, Keys, Node, Reads, Refusal, StreamName, Wait, clock::now_ns};
use std::{io, path::Path, time::UNIX_EPOCH};

/// Interval of standings of a stream: a late receiver learns its name within this time.
pub const STANDING_NS: u64 = 250_000_000;
/// Frames up to this size are built without allocating; longer ones make the buffer grow once.
const FRAME_BYTES_KEPT: usize = HEAD_BYTES + (1 << 16);
/// Attempts between two reads of the clock while the carrier has no room.
const TRIES_PER_LOOK: u32 = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Its node's name. A process restarted under it continues where its predecessor ended.
    pub name: String,
    /// Names of streams, or prefixes with a star.
    pub streams: Vec<String>,
    pub wait: Wait,
    /// Longest time for which a frame is retried while the carrier has no room, ns.
    pub patience_ns: u64,
}

/// Counts of a sender, over all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Records that the carrier accepted.
    pub sent: u64,
    /// Records that never reached the sender, because it was too slow or away.
    pub lost: u64,
    /// Records dropped because the carrier had no room within the patience.
    pub back_pressure: u64,
    /// Records while no receiver was connected.
    pub not_connected: u64,
    /// Records that were too long for the carrier.
    pub too_long: u64,
    /// Records with repeated numbers, from processes that were dropped.
    pub old: u64,
}

/// Result of a turn: continue or stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    GoOn,
    /// The master has requested the stop.
    Stop,
}

#[derive(Debug)]
pub struct Sender<C> {
    node: Node,
    state: SenderState<C>,
    standing_due_ns: u64,
    is_over: bool,
}

/// All state except for the node, which lends out its events.
#[derive(Debug)]
struct SenderState<C> {
    carrier: C,
    run: u64,
    epoch: u64,
    patience_ns: u64,
    /// By the number of the writing node.
    streams: Vec<Option<Stream>>,
    bytes: Vec<u8>,
    was_connected: bool,
    counts: Counts,
    hop: Hop,
    closed: Option<String>,
}

#[derive(Debug)]
struct Stream {
    name: String,
    account: Outgoing,
}

impl<C: Carrier> Sender<C> {
    /// Joins the run whose master listens at this socket.
    pub fn join(master: &Path, options: &Options, carrier: C) -> Result<Self, Refusal> {
        let run = run_of(master)?;
        let reads = options.streams.iter().map(|streams| Reads::new(streams, Keys::All));
        let join = Join::new(&options.name, "bridge-sender").reading(reads).waiting(options.wait);
        let node = Node::join(master, &join).map_err(Refusal::of)?;
        let state = SenderState {
            carrier,
            run,
            epoch: node.epoch(),
            patience_ns: options.patience_ns,
            streams: (0..STREAMS_MAX).map(|_| None).collect(),
            bytes: Vec::with_capacity(FRAME_BYTES_KEPT),
            was_connected: false,
            counts: Counts::default(),
            hop: Hop::default(),
            closed: None,
        };
        Ok(Self { node, state, standing_due_ns: 0, is_over: false })
    }

    /// Waits for records, as configured in [`Options::wait`] and until `until_ns` of the pipeline's clock at
    /// the latest, and sends what is available.
    pub fn turn(&mut self, until_ns: u64) -> Result<Turn, Refusal> {
        self.node.wait(Some(until_ns.min(self.standing_due_ns)));
        let Self { node, state, is_over, .. } = self;
        node.poll(&mut |_, event| match event {
            Event::Record { stream, record, payload } => state.send(stream, record, payload),
            Event::Lost { stream, count } => state.lose(stream, count),
            Event::Stop => *is_over = true,
            _ => {}
        });
        self.state.greet();
        let now = now_ns();
        if now >= self.standing_due_ns {
            self.standing_due_ns = now.saturating_add(STANDING_NS);
            self.state.tell_standings();
        }
        if let Some(words) = self.state.closed.take() {
            return Err(closed(&words));
        }
        if let Some(ended) = self.node.ended() {
            return Err(Refusal::of(ended));
        }
        Ok(if self.is_over { Turn::Stop } else { Turn::GoOn })
    }

    /// Number of senders of this name in the run, including this one.
    pub fn epoch(&self) -> u64 {
        self.state.epoch
    }

    /// Start of the run, ns of the wall clock.
    pub fn run(&self) -> u64 {
        self.state.run
    }

    /// Returns true if a receiver is connected.
    pub fn is_connected(&self) -> bool {
        self.state.carrier.is_connected()
    }

    pub fn counts(&self) -> Counts {
        self.state.counts
    }

    /// From the generation of records until the carrier accepted them, in this host's clock.
    pub fn hop(&self) -> HopFigures {
        self.state.hop.figures()
    }
}

impl<C: Carrier> SenderState<C> {
    #[inline]
    fn send(&mut self, stream: &StreamName, record: &Record, payload: &[u8]) {
        self.greet();
        let number = stream.writer();
        let Some(known) = self.known(stream) else { return };
        let SendDecision::Send { void } = known.account.see(record.sequence) else {
            self.counts.old += 1;
            return;
        };
        let head = self.head(number, record.sequence, void);
        Frame { head, body: Body::Record { stamp: record.stamp, payload } }.encode(&mut self.bytes);
        match self.offer_patiently() {
            Offered::Taken => {
                self.counts.sent += 1;
                self.hop.record(record.stamp.generated, now_ns());
            }
            Offered::BackPressure => self.counts.back_pressure += 1,
            Offered::NotConnected => {
                self.was_connected = false;
                self.counts.not_connected += 1;
            }
            Offered::TooLong => self.counts.too_long += 1,
            Offered::Closed(words) => self.closed = Some(words),
        }
    }

    /// A receiver that connects gets the names first.
    #[inline]
    fn greet(&mut self) {
        if !self.was_connected && self.carrier.is_connected() {
            self.was_connected = true;
            self.tell_standings();
        }
    }

    fn lose(&mut self, stream: &StreamName, count: u64) {
        self.counts.lost += count;
        if let Some(known) = self.known(stream) {
            known.account.lose(count);
        }
    }

    /// The account of a stream. The first time, its name is sent before its first record.
    #[inline]
    fn known(&mut self, stream: &StreamName) -> Option<&mut Stream> {
        let number = usize::try_from(stream.writer()).ok()?;
        if self.streams.get(number)?.is_none() {
            let account = Outgoing::default();
            *self.streams.get_mut(number)? = Some(Stream { name: stream.as_str().to_owned(), account });
            self.tell_standing(number);
        }
        self.streams.get_mut(number)?.as_mut()
    }

    fn tell_standings(&mut self) {
        for number in 0..self.streams.len() {
            self.tell_standing(number);
        }
    }

    /// A standing that is not accepted is followed by the next one.
    fn tell_standing(&mut self, number: usize) {
        let Some(Some(stream)) = self.streams.get(number) else { return };
        let (sequence, void) = stream.account.standing();
        let head = self.head(u32::try_from(number).unwrap_or(u32::MAX), sequence, void);
        Frame { head, body: Body::Standing { name: &stream.name } }.encode(&mut self.bytes);
        match self.offer_patiently() {
            Offered::NotConnected => self.was_connected = false,
            Offered::Closed(words) => self.closed = Some(words),
            Offered::Taken | Offered::BackPressure | Offered::TooLong => {}
        }
    }

    fn head(&self, stream: u32, sequence: u64, void: u64) -> FrameHead {
        FrameHead { stream, run: self.run, epoch: self.epoch, sequence, void }
    }

    #[inline]
    fn offer_patiently(&mut self) -> Offered {
        let mut until_ns = None;
        loop {
            for _ in 0..TRIES_PER_LOOK {
                match self.carrier.offer(&self.bytes) {
                    Offered::BackPressure => lowlat_ipc::relax(),
                    offered => return offered,
                }
            }
            let now = now_ns();
            if now >= *until_ns.get_or_insert(now.saturating_add(self.patience_ns)) {
                return Offered::BackPressure;
            }
            // The process that makes room may need this CPU.
            std::thread::yield_now();
        }
    }
}

/// Start of a run: when its master created its socket.
fn run_of(master: &Path) -> Result<u64, Refusal> {
    let failed = |error: io::Error| {
        Refusal::new(format!(
            "cannot determine the start of the run from {}: {error}\nhint: name the socket of a running master",
            master.display()
        ))
    };
    let modified = std::fs::metadata(master).and_then(|metadata| metadata.modified()).map_err(failed)?;
    let since = modified.duration_since(UNIX_EPOCH).map_err(|error| failed(io::Error::other(error)))?;
    Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX).max(1))
}
