//! The end of the bridge at the receiving run: a node per stream, which publishes the received records.

use crate::{
    Hop, HopFigures,
    accounts::{Incoming, Notice, Verdict},
    frame::{Body, Frame, FrameError, FrameHead, STREAMS_MAX},
    mark::{self, StreamMarks},
};
use lowlat_ipc::stream::{self, Stamp};
use lowlat_node::{Event, Join, JoinError, Node, NodePublishError, Refusal, Wait, Writes, clock::now_ns};
use std::{fmt, path::Path};

/// Interval of heartbeats of each node.
const BEAT_NS: u64 = 100_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgedStreamOptions {
    /// Its name, on both hosts.
    pub stream: String,
    /// Upper bound of its instruments.
    pub keys: u32,
    /// Bytes of its ring here.
    pub capacity_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Prefix of its nodes' names, followed by the stream's name.
    pub name: String,
    pub streams: Vec<BridgedStreamOptions>,
    /// Waiting mode shown for its nodes.
    pub wait: Wait,
    /// Notices are published in the stream ([`mark`]); otherwise they are only counted and reported.
    pub has_marks: bool,
}

/// Counts of a receiver, over all streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Records published in this host's run.
    pub published: u64,
    /// Records of the origin that readers here never got, including those before the first one.
    pub lost: u64,
    /// Numbers without a record: writers at the origin restarted.
    pub void: u64,
    /// Frames of already published records.
    pub duplicates: u64,
    /// Frames of senders that have a successor.
    pub fenced: u64,
    /// Frames of streams that are not received here, or whose name is not known yet.
    pub not_ours: u64,
    /// Messages that are not frames.
    pub refused: u64,
    /// Records that do not fit the stream here: longer than its ring allows. They also count as lost.
    pub unfit: u64,
    /// Records of instruments that the stream here does not have: published, and delivered only to readers of
    /// all instruments.
    pub unrouted: u64,
    pub marks: u64,
}

/// Event of a receiver, to be reported by its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// A notice about a stream.
    Notice {
        stream: String,
        told: Notice,
        /// The sender of the frame that caused it.
        head: FrameHead,
    },
    /// A message is not a frame. Only the first of each kind is reported; all are counted.
    Refused(FrameError),
}

impl fmt::Display for ReceiverEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Notice { stream, told: Notice { why, lost, void }, head } => {
                let FrameHead { run, epoch, sequence, .. } = head;
                write!(
                    f,
                    "stream {stream}: {why}: {lost} lost, {void} void before {sequence} (run {run}, sender {epoch})"
                )
            }
            Self::Refused(error) => write!(f, "message refused: {error}"),
        }
    }
}

#[derive(Debug)]
pub struct Receiver {
    streams: Vec<Stream>,
    /// By the number of a stream at its origin: its run, and the index of our stream.
    numbers: Vec<(u64, Option<usize>)>,
    has_marks: bool,
    counts: Counts,
    hop: Hop,
    beat_due_ns: u64,
    is_over: bool,
    has_refused: bool,
}

#[derive(Debug)]
struct Stream {
    name: String,
    node: Node,
    account: Incoming,
    marks: StreamMarks,
    keys: u32,
    has_begun: bool,
}

impl Receiver {
    /// Joins the run whose master listens at this socket, once per stream.
    pub fn join(master: &Path, options: &Options) -> Result<Self, Refusal> {
        let streams = options.streams.iter().map(|asked| {
            let BridgedStreamOptions { stream, keys, capacity_bytes } = asked.clone();
            let join = Join::new(&format!("{}.{stream}", options.name), "bridge-receiver")
                .writing(Writes::new(&stream, capacity_bytes, keys))
                .waiting(options.wait);
            let node = Node::join(master, &join)?;
            let (account, marks) = (Incoming::default(), StreamMarks::new(keys));
            Ok(Stream { name: stream, node, account, marks, keys, has_begun: false })
        });
        Ok(Self {
            streams: streams.collect::<Result<_, JoinError>>().map_err(Refusal::of)?,
            numbers: (0..STREAMS_MAX).map(|_| (0, None)).collect(),
            has_marks: options.has_marks,
            counts: Counts::default(),
            hop: Hop::default(),
            beat_due_ns: 0,
            is_over: false,
            has_refused: false,
        })
    }

    /// Handles the master's messages: connects new readers, and notes the end. To be called between frames.
    pub fn hear(&mut self) -> Result<(), Refusal> {
        let now = now_ns();
        let is_due = now >= self.beat_due_ns;
        if is_due {
            self.beat_due_ns = now.saturating_add(BEAT_NS);
        }
        for stream in &mut self.streams {
            if is_due {
                // Sends a heartbeat.
                stream.node.wait(Some(now));
            }
            stream.node.poll(&mut |_, event| match event {
                Event::Begin => stream.has_begun = true,
                Event::Stop => self.is_over = true,
                _ => {}
            });
            if let Some(source) = stream.node.ended() {
                return Err(of_stream(&stream.name, source));
            }
        }
        Ok(())
    }

    /// Returns true once frames may arrive: all readers from the begin are connected.
    pub fn has_begun(&self) -> bool {
        self.streams.iter().all(|stream| stream.has_begun)
    }

    /// Returns true once the master has requested the stop.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn counts(&self) -> Counts {
        let accounts = self.streams.iter().map(|stream| &stream.account);
        let (lost, void) = accounts.fold((0_u64, 0_u64), |(lost, void), account| {
            (lost.saturating_add(account.lost()), void.saturating_add(account.void()))
        });
        Counts { lost, void, ..self.counts }
    }

    /// From the receipt of frames until their records were published, in this host's clock.
    pub fn hop(&self) -> HopFigures {
        self.hop.figures()
    }

    /// Handles a message of the carrier.
    pub fn take(&mut self, message: &[u8], say: &mut impl FnMut(ReceiverEvent)) -> Result<(), Refusal> {
        let taken_ns = now_ns();
        let frame = match Frame::decode(message) {
            Ok(frame) => frame,
            Err(error) => {
                self.counts.refused += 1;
                if !std::mem::replace(&mut self.has_refused, true) {
                    say(ReceiverEvent::Refused(error));
                }
                return Ok(());
            }
        };
        if let Body::Standing { name } = frame.body {
            self.name(&frame.head, name);
        }
        let Some(stream) = self.stream_of(&frame.head).and_then(|at| self.streams.get_mut(at)) else {
            self.counts.not_ours += 1;
            return Ok(());
        };
        let verdict = match frame.body {
            Body::Record { .. } => stream.account.take(&frame.head),
            Body::Standing { .. } => stream.account.stand(&frame.head),
        };
        match verdict {
            Verdict::Duplicate => self.counts.duplicates += 1,
            Verdict::Fenced => self.counts.fenced += 1,
            Verdict::Accept(told) => {
                if let Some(told) = told {
                    stream.marks.set(told);
                    say(ReceiverEvent::Notice { stream: stream.name.clone(), told, head: frame.head });
                }
                if let Body::Record { stamp, payload } = frame.body {
                    stream.publish(&frame.head, &stamp, payload, self.has_marks, &mut self.counts)?;
                    self.hop.record(taken_ns, now_ns());
                }
            }
        }
        Ok(())
    }

    /// A number of this run gets a name. A sender of an older run is ignored.
    fn name(&mut self, head: &FrameHead, name: &str) {
        let ours = self.streams.iter().position(|stream| stream.name == name);
        let Some(place) = usize::try_from(head.stream).ok().and_then(|at| self.numbers.get_mut(at)) else {
            return;
        };
        if head.run >= place.0 {
            *place = (head.run, ours);
        }
    }

    #[inline]
    fn stream_of(&self, head: &FrameHead) -> Option<usize> {
        let (run, ours) = usize::try_from(head.stream).ok().and_then(|at| self.numbers.get(at))?;
        // Older run: its stream fences it. Newer run: its name arrives first.
        if head.run <= *run { *ours } else { None }
    }
}

impl Stream {
    fn publish(
        &mut self,
        head: &FrameHead,
        stamp: &Stamp,
        payload: &[u8],
        has_marks: bool,
        counts: &mut Counts,
    ) -> Result<(), Refusal> {
        if has_marks {
            let totals = (self.account.lost(), self.account.void());
            if let Some(mark) = self.marks.before(stamp.instrument, head, totals) {
                let stamp = mark::stamp(stamp.instrument, self.node.number(), now_ns());
                self.append(&stamp, &mark.encode())?;
                counts.marks += 1;
            }
        }
        if self.append(stamp, payload)? {
            counts.published += 1;
            counts.unrouted += u64::from(stamp.instrument >= self.keys);
        } else {
            counts.unfit += 1;
            self.account.lose_one();
            self.marks.set(Notice { why: crate::accounts::Why::Gap, lost: 1, void: 0 });
        }
        Ok(())
    }

    /// Publishes a record; returns false if it does not fit this stream.
    fn append(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<bool, Refusal> {
        match self.node.publisher().publish_waking(stamp, payload, true) {
            Ok(_) => Ok(true),
            Err(NodePublishError::Refused(stream::PublishError::TooLong { .. })) => Ok(false),
            Err(source) => Err(of_stream(&self.name, source)),
        }
    }
}
/// The refusal of a stream whose node has ended or cannot publish any more.
fn of_stream(name: &str, error: impl fmt::Display) -> Refusal {
    Refusal::new(format!("stream {name}: {error}"))
}
