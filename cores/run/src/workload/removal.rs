//! Removal of System V objects, which outlive the processes that use them.

use super::fork::{Forked, fork, leave, only_read};
use rustix::pipe::{PipeFlags, pipe_with};
use std::{io, os::fd::OwnedFd};

/// System V objects that are removed when this is dropped, or when the program ends in any way: a process waits for the
/// end of a pipe that only this program and its children hold, and then removes them.
#[derive(Debug)]
pub struct Removal {
    /// Dropped first: its end is the signal.
    held: Option<OwnedFd>,
    remover: Option<Forked>,
    objects: Vec<i32>,
    remove: fn(i32),
}

impl Removal {
    /// Makes objects, and arranges for their removal. `make` returns the number of the next one, and `remove` removes
    /// one, which may be gone.
    ///
    /// # Errors
    /// The system's error; what was made before is removed.
    pub fn of(remove: fn(i32), count: usize, make: impl Fn() -> io::Result<i32>) -> io::Result<Self> {
        // Without a remover its drop removes them.
        let mut all = Self { held: None, remover: None, objects: Vec::with_capacity(count), remove };
        for _ in 0..count {
            all.objects.push(make()?);
        }
        let (end, held) = pipe_with(PipeFlags::CLOEXEC)?;
        let objects = &all.objects;
        let held_by_child = rustix::fd::AsRawFd::as_raw_fd(&held);
        let remover = fork(false, || {
            // Out of reach of signals to lowlat's process group.
            let _ = rustix::process::setsid();
            leave(held_by_child);
            only_read(&end);
            objects.iter().copied().for_each(remove);
        })?;
        (all.held, all.remover) = (Some(held), Some(remover));
        Ok(all)
    }

    /// Number of an object; -1 if there is none.
    pub fn id(&self, place: usize) -> i32 {
        self.objects.get(place).copied().unwrap_or(-1)
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        drop(self.held.take());
        match self.remover.take() {
            // Children that hold the pipe have ended, or end with their own jobs before this.
            Some(remover) => remover.wait(),
            None => self.objects.iter().copied().for_each(self.remove),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::work::{done, msg_sysv::remove};

    /// A new queue of messages.
    fn make() -> io::Result<i32> {
        // SAFETY: numbers only.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) };
        done(id.into()).map(|()| id)
    }

    fn exists(id: i32) -> bool {
        // SAFETY: plain data, which the call fills.
        let mut state: libc::msqid_ds = unsafe { std::mem::zeroed() };
        // SAFETY: the state lives through the call.
        unsafe { libc::msgctl(id, libc::IPC_STAT, &raw mut state) == 0 }
    }

    #[test]
    fn objects_are_removed_when_they_are_dropped_and_when_making_the_next_fails() {
        let all = Removal::of(remove, 3, make).unwrap();
        let ids = [0, 1, 2].map(|place| all.id(place));
        assert!(ids.iter().all(|id| exists(*id)));
        drop(all);
        assert!(!ids.iter().any(|id| exists(*id)));
        let made = std::cell::Cell::new(None);
        let second_fails = || match made.get() {
            None => make().inspect(|id| made.set(Some(*id))),
            Some(_) => Err(io::ErrorKind::OutOfMemory.into()),
        };
        assert!(Removal::of(remove, 2, second_fails).is_err());
        assert!(!exists(made.get().unwrap()));
    }
}
