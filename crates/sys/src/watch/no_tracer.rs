//! Other processors: making a call in a program takes their registers, which are not known here.

use super::{TraceEvent, WatchError};
use crate::Root;
use std::{convert::Infallible, os::fd::OwnedFd};

/// A traced program: none on this processor.
#[derive(Debug)]
pub struct Tracer {
    /// How long all threads were stopped, in nanoseconds.
    pub stopped_ns: u64,
    /// Status of wait(2) if this process had to wait for the program.
    pub ended: Option<i32>,
    none: Infallible,
}

impl Tracer {
    /// Refuses.
    ///
    /// # Errors
    /// [`WatchError::Machine`].
    pub fn attach(_: &Root, _: u32) -> Result<(Self, [OwnedFd; 2]), WatchError> {
        Err(WatchError::Machine)
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn make_again(&mut self, _: &Root) -> Result<[OwnedFd; 2], WatchError> {
        match self.none {}
    }

    /// Cannot be called.
    pub fn event(&mut self) -> Option<TraceEvent> {
        match self.none {}
    }

    /// Cannot be called.
    pub fn let_end(&mut self, _: u32) -> Option<TraceEvent> {
        match self.none {}
    }

    /// Cannot be called.
    pub fn threads(&self) -> Vec<u32> {
        match self.none {}
    }
}
