//! Stub for other processors: making a call in a program needs their registers, which are not known here.

use super::{ProgramEvent, WatchError};
use lowlat_host_run::Root;
use std::{marker::PhantomData, os::fd::OwnedFd};

/// Traced programs: none on this processor.
#[derive(Debug)]
pub struct Tracer<'a> {
    /// Time for which threads were stopped, in nanoseconds.
    pub stopped_ns: u64,
    root: PhantomData<&'a Root>,
}

impl<'a> Tracer<'a> {
    #[must_use]
    pub fn new(_: &'a Root) -> Self {
        Self { stopped_ns: 0, root: PhantomData }
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn attach(&mut self, _: u32) -> Result<[OwnedFd; 2], WatchError> {
        Err(WatchError::new(
            "cannot watch the memory of a program: only supported on x86-64\nhint: use `perf c2c` there",
        ))
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn hold(&mut self, pid: u32) -> Result<(), WatchError> {
        self.attach(pid).map(drop)
    }

    pub fn event(&mut self, _: bool) -> Option<ProgramEvent> {
        None
    }

    pub fn let_end(&mut self, _: u32) {}
}
