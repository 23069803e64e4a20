//! What two processes share for one run: memory for both directions, and whatever descriptors the subject needs.

use super::{End, subject::Subject};
use crate::ipc::trial::memory::{Cutter, Part};
use anyhow::Context;
use lowlat_ipc::{
    inbox, index_ring, interest,
    region::{Access, Memfd, Region},
    stream::Segment,
};
use rustix::{
    event::{EventfdFlags, eventfd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    pipe::{PipeFlags, pipe_with},
};
use std::{
    ops::Range,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

/// The ring of a stream. Ping and pong: never more than one record is under way.
pub const RING_BYTES: u64 = 256 << 10;
/// Entries of a ring of positions.
pub const ENTRIES: u64 = 1024;

/// Memory of one direction.
#[derive(Debug)]
pub struct Direction {
    /// A line, and a futex behind it.
    pub line: Range<u64>,
    /// A segment.
    pub segment: Range<u64>,
    /// A ring of positions.
    pub ring: Range<u64>,
    /// The receiver's inbox.
    pub inbox: Range<u64>,
    /// Who wants what: the one receiver everything.
    pub interest: Range<u64>,
}

/// All of the memory: where both meet, and both directions.
#[derive(Debug)]
struct Layout {
    meeting: Range<u64>,
    directions: [Direction; 2],
    bytes: u64,
}

impl Layout {
    fn new() -> Self {
        let mut cutter = Cutter::default();
        let meeting = cutter.cut(4096);
        let mut direction = || Direction {
            line: cutter.cut(4096),
            segment: cutter.cut(Segment::<Part>::bytes(RING_BYTES)),
            ring: cutter.cut(index_ring::bytes(ENTRIES)),
            inbox: cutter.cut(inbox::BYTES),
            interest: cutter.cut(interest::bytes(1)),
        };
        let directions = [direction(), direction()];
        Self { meeting, directions, bytes: cutter.bytes() }
    }
}

/// What the parent makes for a run.
#[derive(Debug)]
pub struct Made {
    memory: Memfd,
    /// For the side that pings, and for the one that answers.
    others: [Vec<OwnedFd>; 2],
}

impl Made {
    /// Everything for a run of a subject.
    pub fn new(subject: Subject) -> anyhow::Result<Self> {
        let memory = Memfd::create("lowlat-peers", Layout::new().bytes)?;
        let others = match subject {
            Subject::Pipe => {
                let (there_out, there_in) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
                let (back_out, back_in) = pipe_with(PipeFlags::CLOEXEC).context("pipe")?;
                [vec![there_in, back_out], vec![back_in, there_out]]
            }
            Subject::Eventfd => {
                let there = eventfd(0, EventfdFlags::CLOEXEC).context("eventfd")?;
                let back = eventfd(0, EventfdFlags::CLOEXEC).context("eventfd")?;
                let copies = vec![back.try_clone()?, there.try_clone()?];
                [vec![there, back], copies]
            }
            Subject::Seqpacket => {
                let (one, other) =
                    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                        .context("socketpair")?;
                [vec![one], vec![other]]
            }
            _ => [Vec::new(), Vec::new()],
        };
        Ok(Self { memory, others })
    }

    /// What one side is given.
    pub fn descriptors(&self, end: End) -> Vec<BorrowedFd<'_>> {
        let [ping, echo] = &self.others;
        let own = match end {
            End::Ping => ping,
            End::Echo => echo,
        };
        std::iter::once(self.memory.writer_fd()).chain(own.iter().map(AsFd::as_fd)).collect()
    }
}

/// How many descriptors a side is given.
pub fn descriptor_count(subject: Subject) -> usize {
    match subject {
        Subject::Pipe | Subject::Eventfd => 3,
        Subject::Seqpacket => 2,
        _ => 1,
    }
}

/// One side's view of a run.
#[derive(Debug)]
pub struct Channel {
    memory: Arc<Memfd>,
    layout: Layout,
    /// Which side this is.
    pub end: End,
    /// For files.
    pub folder: PathBuf,
    others: Vec<OwnedFd>,
}

impl Channel {
    /// What a side was given.
    pub fn new(end: End, folder: PathBuf, mut descriptors: Vec<OwnedFd>) -> anyhow::Result<Self> {
        anyhow::ensure!(!descriptors.is_empty(), "no memory was passed on");
        let memory = Arc::new(Memfd::open(descriptors.remove(0), Access::Write)?);
        Ok(Self { memory, layout: Layout::new(), end, folder, others: descriptors })
    }

    /// Memory from this side to the other, and the other way.
    pub fn directions(&self) -> [&Direction; 2] {
        let [there, back] = &self.layout.directions;
        match self.end {
            End::Ping => [there, back],
            End::Echo => [back, there],
        }
    }

    /// A part of the memory.
    pub fn part(&self, bytes: &Range<u64>) -> Part {
        Part::new(&self.memory, bytes)
    }

    /// Takes a descriptor that was passed on, the first that is left.
    pub fn descriptor(&mut self) -> anyhow::Result<OwnedFd> {
        anyhow::ensure!(!self.others.is_empty(), "a descriptor is missing");
        Ok(self.others.remove(0))
    }

    /// Waits until the other side has come as far as this one.
    pub fn meet(&self, step: u64) {
        let part = self.part(&self.layout.meeting);
        let (own, other) = match self.end {
            End::Ping => (0, 16),
            End::Echo => (16, 0),
        };
        let word = |at: usize| part.words().get(at);
        if let Some(word) = word(own) {
            // Pairs with the load below on the other side: what was made before is seen.
            word.store(step, Ordering::Release);
        }
        while word(other).is_some_and(|word| word.load(Ordering::Acquire) < step) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
