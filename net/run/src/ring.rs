//! Receiving through `io_uring`.

use super::{calls::Wait, link::Ended};
use io_uring::{IoUring, opcode, types};
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Entries of the queues; one receive is in flight.
const ENTRIES: u32 = 4;
/// User data of the receive.
const RECEIVE: u64 = 1;
/// User data of its cancellation.
const CANCEL: u64 = 2;

/// A ring that receives from one descriptor.
pub struct Ring {
    ring: IoUring,
    is_pipe: bool,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("is_pipe", &self.is_pipe).finish_non_exhaustive()
    }
}

impl Ring {
    /// Creates a ring; with `busy_poll_us` its waits poll the queue of the NIC (Linux 6.9).
    pub fn new(is_pipe: bool, busy_poll_us: Option<u32>) -> io::Result<Self> {
        let ring = IoUring::new(ENTRIES)?;
        if let Some(busy_poll_us) = busy_poll_us {
            let mut napi = types::Napi::new().set_busy_poll_timeout(busy_poll_us).set_prefer_busy_poll(true);
            ring.submitter().register_napi(&mut napi)?;
        }
        Ok(Self { ring, is_pipe })
    }

    /// Receives into the buffer. Without sleeping, it polls the completion queue until `should_end` says to stop.
    pub fn receive(
        &mut self,
        fd: BorrowedFd<'_>,
        into: &mut [u8],
        wait: Wait,
        should_end: impl Fn() -> bool,
    ) -> Result<usize, Ended> {
        let length = u32::try_from(into.len()).unwrap_or(u32::MAX);
        let fd = types::Fd(fd.as_raw_fd());
        let entry = if self.is_pipe {
            opcode::Read::new(fd, into.as_mut_ptr(), length).offset(u64::MAX).build()
        } else {
            opcode::Recv::new(fd, into.as_mut_ptr(), length).build()
        };
        // SAFETY: descriptor and buffer outlive the operation: every way out of this function comes after its
        // completion, which `cancel` enforces.
        unsafe { self.ring.submission().push(&entry.user_data(RECEIVE)) }
            .map_err(|_| Ended::Failed(io::Error::other("the submission queue is full")))?;
        let submitted = match wait {
            Wait::Sleep => self.submit_and_wait(),
            Wait::Not => self.ring.submit().map(drop),
        };
        if let Err(error) = submitted {
            self.cancel();
            return Err(Ended::Failed(error));
        }
        loop {
            if let Some(done) = self.ring.completion().next() {
                let result = done.result();
                return usize::try_from(result)
                    .map_err(|_| Ended::Failed(io::Error::from_raw_os_error(-result)));
            }
            if should_end() {
                self.cancel();
                return Err(Ended::Stopped);
            }
            std::hint::spin_loop();
        }
    }

    fn submit_and_wait(&mut self) -> io::Result<()> {
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Cancels the receive in flight, and returns once the kernel no longer uses its buffer.
    fn cancel(&mut self) {
        let entry = opcode::AsyncCancel::new(RECEIVE).build().user_data(CANCEL);
        // SAFETY: the operation uses no memory of this process. A full queue refuses it; then the receive in flight,
        // whose descriptor is being shut down, completes alone.
        let _ = unsafe { self.ring.submission().push(&entry) };
        loop {
            if self.ring.completion().any(|done| done.user_data() == RECEIVE) {
                return;
            }
            if self.submit_and_wait().is_err() {
                std::thread::yield_now();
            }
        }
    }
}
