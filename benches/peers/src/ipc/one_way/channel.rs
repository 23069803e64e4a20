//! Resources that two processes share for one run: memory for both directions, and the descriptors that the subject
//! needs.

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

/// Bytes of the ring of a stream. In ping-pong, at most one record is in flight.
pub const RING_BYTES: u64 = 256 << 10;
/// Entries of a ring of positions.
pub const ENTRIES: u64 = 1024;

/// Parts of the memory for one direction.
#[derive(Debug)]
pub struct Direction {
    /// A line, and a futex after it.
    pub line: Range<u64>,
    /// Segment of the direction's stream.
    pub segment: Range<u64>,
    /// Ring of positions for the receiver.
    pub ring: Range<u64>,
    pub inbox: Range<u64>,
    /// Table of interest: the only receiver wants everything.
    pub interest: Range<u64>,
}

/// All of the memory: the meeting point, and both directions.
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

/// Resources that the parent creates for a run.
#[derive(Debug)]
pub struct Made {
    memory: Memfd,
    /// Descriptors of the side that pings, and of the one that answers.
    others: [Vec<OwnedFd>; 2],
}

impl Made {
    /// Creates the resources for a run of a subject.
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

    /// Returns the descriptors that one side gets.
    pub fn descriptors(&self, end: End) -> Vec<BorrowedFd<'_>> {
        let [ping, echo] = &self.others;
        let own = match end {
            End::Ping => ping,
            End::Echo => echo,
        };
        std::iter::once(self.memory.writer_fd()).chain(own.iter().map(AsFd::as_fd)).collect()
    }
}

/// Returns the number of descriptors that one side gets.
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
    pub end: End,
    /// Folder for the files of a run.
    pub folder: PathBuf,
    others: Vec<OwnedFd>,
}

impl Channel {
    /// Opens the descriptors that this side got.
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

    /// Takes the first remaining descriptor.
    pub fn descriptor(&mut self) -> anyhow::Result<OwnedFd> {
        anyhow::ensure!(!self.others.is_empty(), "a descriptor is missing");
        Ok(self.others.remove(0))
    }

    /// Waits until the other side has reached this step too.
    pub fn meet(&self, step: u64) {
        let part = self.part(&self.layout.meeting);
        let (own, other) = match self.end {
            End::Ping => (0, 16),
            End::Echo => (16, 0),
        };
        let word = |at: usize| part.words().get(at);
        if let Some(word) = word(own) {
            // Pairs with the load below on the other side, which then sees what was created before.
            word.store(step, Ordering::Release);
        }
        while word(other).is_some_and(|word| word.load(Ordering::Acquire) < step) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}
