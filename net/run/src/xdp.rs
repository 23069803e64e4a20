//! An end that sends and receives frames through AF_XDP sockets.
//!
//! Each queue of the interface has a socket with its own memory, since the flow of a run may arrive on any of them. The
//! program on the interface sends only the frames of this flow to the sockets. A link holds it, so it is removed when
//! the process ends.

mod set_up;

pub use set_up::{XdpError, open};

use super::{
    calls::{self, Wait},
    link::Ended,
};
use crate::bpf::Link;
use lowlat_net::{
    pingpong::Waiting,
    xdp::{
        XdpFacts,
        frame::{self, Path},
    },
};
use std::{
    hint, io,
    os::fd::{AsRawFd, BorrowedFd},
};
use xdp::{
    Packet, Rings, Umem,
    slab::{Slab, StackSlab},
    socket::XdpSocket,
};

/// Completed frames taken from a queue at once.
const COMPLETED_MAX: usize = 16;
/// Longest sleep of a thread between two checks of the stop flag.
const SLEEP_MS_MAX: i32 = 100;
/// Turns of a spinning thread between two checks of the stop flag.
const TURNS_PER_LOOK: u32 = 1 << 10;
/// Turns of a spinning thread between two calls that wake a driver which waits for memory.
const TURNS_PER_WAKE: u32 = 1 << 16;

/// One queue of the interface. Fields are dropped in order: the memory outlives the socket and its rings.
struct Queue {
    socket: XdpSocket,
    rings: Rings,
    umem: Umem,
}

pub struct Port {
    /// First, so that the program is detached before the sockets are closed.
    _link: Link,
    queues: Vec<Queue>,
    /// The sockets, as `poll` takes them.
    polled: Vec<libc::pollfd>,
    /// The queue where the last message arrived.
    active: usize,
    path: Path,
    waiting: Waiting,
    /// The last message that was sent, and its frame: most messages equal the one before.
    payload: Vec<u8>,
    frame: Vec<u8>,
    facts: XdpFacts,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("path", &self.path).field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Queue {
    fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket owns the descriptor and is borrowed as long as the result, so it stays open.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }

    /// The next frame that arrived.
    fn next(&mut self) -> Option<Packet> {
        let ring = self.rings.rx_ring.as_mut()?;
        let mut one = StackSlab::<1>::new();
        // SAFETY: packets stay with this queue, whose memory is dropped last.
        unsafe { ring.recv(&self.umem, &mut one) };
        one.pop_back()
    }

    /// Gives the memory of a frame back to the kernel.
    fn release(&mut self, packet: Packet) {
        self.umem.free_packet(packet);
        // SAFETY: the memory of this queue is dropped after its socket.
        unsafe { self.rings.fill_ring.enqueue(&mut self.umem, 1) };
    }

    /// Puts a frame into the ring of frames to send; `false` if there is no room yet.
    fn put(&mut self, frame: &[u8]) -> io::Result<bool> {
        self.rings.completion_ring.dequeue(&mut self.umem, COMPLETED_MAX);
        let Some(ring) = &mut self.rings.tx_ring else { return Ok(false) };
        // SAFETY: the packet stays with this queue, whose memory is dropped last.
        let Some(mut packet) = (unsafe { self.umem.alloc() }) else { return Ok(false) };
        let copied = packet.insert(0, frame).map_err(|error| io::Error::other(error.discriminant()));
        let mut one = StackSlab::<1>::new();
        one.push_front(packet);
        // SAFETY: as above.
        let is_sent = copied.is_ok() && unsafe { ring.send(&mut one) } > 0;
        if let Some(packet) = one.pop_back() {
            self.umem.free_packet(packet);
        }
        copied.map(|()| is_sent)
    }
}

impl Port {
    /// AF_XDP mode and queues that the kernel granted.
    pub fn facts(&self) -> &XdpFacts {
        &self.facts
    }

    /// The socket where the last message arrived.
    pub fn active(&self) -> Option<BorrowedFd<'_>> {
        self.queues.get(self.active).map(Queue::fd)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Ended`] if it cannot be sent.
    pub fn send(&mut self, payload: &[u8], should_end: impl Fn() -> bool) -> Result<(), Ended> {
        if self.payload != payload || self.frame.is_empty() {
            let built = frame::build(&self.path, payload);
            self.frame = built.ok_or_else(|| Ended::Failed(io::Error::other("the message is too long")))?;
            payload.clone_into(&mut self.payload);
        }
        let Some(queue) = self.queues.get_mut(self.active) else { return Err(Ended::Closed) };
        while !queue.put(&self.frame).map_err(Ended::Failed)? {
            kick(queue, &should_end)?;
        }
        kick(queue, &should_end)
    }

    /// Receives a message of this flow into the buffer, and waits until one arrives. Returns its length.
    ///
    /// # Errors
    /// [`Ended`] if none arrives.
    pub fn receive(&mut self, into: &mut [u8], should_end: impl Fn() -> bool) -> Result<usize, Ended> {
        let mut turns: u32 = 0;
        loop {
            if let Some(bytes) = self.take(into) {
                return Ok(bytes);
            }
            turns = turns.wrapping_add(1);
            if self.waiting != Waiting::Spin || turns.is_multiple_of(TURNS_PER_LOOK) {
                if should_end() {
                    return Err(Ended::Stopped);
                }
                self.wait(turns).map_err(Ended::Failed)?;
            } else {
                hint::spin_loop();
            }
        }
    }

    /// Takes a message that arrived; first from the queue where the last one did.
    fn take(&mut self, into: &mut [u8]) -> Option<usize> {
        let (count, active) = (self.queues.len(), self.active);
        for place in (active..count).chain(0..active) {
            let Some(queue) = self.queues.get_mut(place) else { continue };
            while let Some(packet) = queue.next() {
                let length = frame::parse(&packet).filter(|datagram| {
                    datagram.source == self.path.destination && datagram.destination == self.path.source
                });
                let length = length.map(|datagram| {
                    let fitting = into.len().min(datagram.payload.len());
                    if let (Some(to), Some(from)) = (into.get_mut(..fitting), datagram.payload.get(..fitting))
                    {
                        to.copy_from_slice(from);
                    }
                    fitting
                });
                queue.release(packet);
                if length.is_some() {
                    self.active = place;
                    return length;
                }
            }
        }
        None
    }

    /// Waits as the waiting mode requires, while nothing has arrived.
    fn wait(&mut self, turns: u32) -> io::Result<()> {
        match self.waiting {
            Waiting::Spin if turns.is_multiple_of(TURNS_PER_WAKE) => self.poll_queues(),
            Waiting::Spin => Ok(()),
            Waiting::BusyPoll => self.poll_queues(),
            _ => calls::poll_each(&mut self.polled, SLEEP_MS_MAX),
        }
    }

    /// Makes the kernel poll the queues of the NIC, in the modes and drivers that do so.
    fn poll_queues(&self) -> io::Result<()> {
        for queue in &self.queues {
            if let Err(error) = calls::receive(queue.fd(), &mut [], Wait::Not)
                && !is_passing(&error)
            {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Makes the kernel send what is in the ring.
fn kick(queue: &Queue, should_end: impl Fn() -> bool) -> Result<(), Ended> {
    loop {
        match calls::kick(queue.fd()) {
            Err(error) if is_passing(&error) => {
                if should_end() {
                    return Err(Ended::Stopped);
                }
            }
            Err(error) => return Err(Ended::Failed(error)),
            Ok(()) => return Ok(()),
        }
    }
}

/// Returns whether the same call may succeed soon: the NIC's queue or the kernel's memory is full.
fn is_passing(error: &io::Error) -> bool {
    const PASSING: [i32; 4] = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS, libc::EINTR];
    error.raw_os_error().is_some_and(|code| PASSING.contains(&code))
}
