//! lowlat-ipc.

use super::{Bytes, Channel, Transport};
use crate::ipc::{
    one_way::channel::{ENTRIES, RING_BYTES},
    trial::{memory::Part, message::PAYLOAD_BYTES},
};
use anyhow::{Context, bail, ensure};
use lowlat_ipc::{
    doorbell::Futex,
    inbox::Inbox,
    index_ring::{self, Taker},
    interest::Interest,
    router::{Delivery, Router},
    stream::{Owner, Read, Reader, Record, Segment, Stamp, Writer},
};
use std::time::Duration;

const SLEEP_MAX: Duration = Duration::from_secs(10);

/// A stream, and a reader that polls it.
#[derive(Debug)]
pub struct Stream {
    writer: Writer<Part>,
    reader: Reader<Part>,
    payload: Vec<u8>,
}

impl Stream {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        let [there, back] = channel.directions();
        let made = Segment::create(channel.part(&there.segment), RING_BYTES, 1, 1, 0, Owner::current()?)?;
        channel.meet(1);
        let theirs = Segment::open(channel.part(&back.segment))?;
        Ok(Self {
            writer: Writer::new(made),
            reader: Reader::from_start(theirs),
            payload: Vec::with_capacity(PAYLOAD_BYTES),
        })
    }
}

impl Transport for Stream {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        self.writer.publish(&Stamp::default(), message)?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            match self.reader.next(&mut self.payload) {
                Read::Record(_) => {
                    let bytes = self.payload.len();
                    ensure!(bytes == PAYLOAD_BYTES, "a payload of {bytes} bytes");
                    message.copy_from_slice(&self.payload);
                    return Ok(());
                }
                Read::Nothing => lowlat_ipc::relax(),
                other => bail!("the stream gave {other:?}"),
            }
        }
    }
}

/// A stream of records that are heads alone: times and causes, as an acknowledgement has them.
#[derive(Debug)]
pub struct Heads(Stream);

impl Heads {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        Ok(Self(Stream::new(channel)?))
    }
}

impl Transport for Heads {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        // All words are the same; one is read.
        let number = message.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        let stamp = Stamp { generated: number, trigger: number, cause: number, ..Stamp::default() };
        self.0.writer.publish(&stamp, &[])?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            match self.0.reader.next(&mut self.0.payload) {
                Read::Record(Record { stamp: Stamp { generated, trigger, cause, .. }, .. }) => {
                    ensure!(
                        generated == trigger && trigger == cause,
                        "a head of {generated}, {trigger}, {cause}"
                    );
                    message.as_chunks_mut().0.fill(generated.to_ne_bytes());
                    return Ok(());
                }
                Read::Nothing => lowlat_ipc::relax(),
                other => bail!("the stream gave {other:?}"),
            }
        }
    }
}

/// A stream whose router puts positions into the receiver's ring, and rings its bell when it sleeps.
#[derive(Debug)]
pub struct Inboxes {
    stream: Stream,
    router: Router<Part>,
    inbox: Inbox<Part>,
    ring: Taker<Part>,
    payload: Vec<u8>,
    is_parked: bool,
}

impl Inboxes {
    pub fn new(channel: &Channel, is_parked: bool) -> anyhow::Result<Self> {
        let [there, back] = channel.directions();
        let table = Interest::create(channel.part(&there.interest), 1).context("memory for a table")?;
        table.set(0, Some(0), true);
        let ring = index_ring::create(channel.part(&there.ring), ENTRIES).context("memory for a ring")?;
        let inbox = Inbox::new(channel.part(&there.inbox)).context("memory for an inbox")?;
        let mut router = Router::new(table);
        router.connect(0, Delivery::Gap(ring), inbox, 0);
        // When this returns, each side has created what the other opens.
        let stream = Stream::new(channel)?;
        Ok(Self {
            stream,
            router,
            inbox: Inbox::new(channel.part(&back.inbox)).context("memory for an inbox")?,
            ring: index_ring::open(channel.part(&back.ring)).context("a ring")?,
            payload: Vec::with_capacity(PAYLOAD_BYTES),
            is_parked,
        })
    }
}

impl Transport for Inboxes {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        self.router.publish(&mut self.stream.writer, &Stamp::default(), message, &Futex)?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            // Like the runtime's nodes: a spinning reader of few streams checks for entries, a sleeping one uses the
            // inbox.
            if self.is_parked {
                self.inbox.take_ready(|_| ());
            } else if !self.ring.has_entry() {
                lowlat_ipc::relax();
                continue;
            }
            if let Some(position) = self.ring.take() {
                let payload = &mut self.payload;
                self.stream.reader.read_at(position, payload).context("the record was overwritten")?;
                ensure!(payload.len() == PAYLOAD_BYTES, "a payload of {} bytes", payload.len());
                message.copy_from_slice(payload);
                return Ok(());
            }
            self.inbox.wait(&Futex, SLEEP_MAX);
        }
    }
}
