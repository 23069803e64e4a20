//! Injected truth: the measured CPU is taken for known durations at known times, and each must be found, with
//! its length and cause.
//!
//! Tests only compare what they know themselves: the machine may be busy with anything else, and an
//! interruption may be longer for other reasons. No test asserts an upper time.

mod check;
mod child;
mod halted;
mod host;
mod injected;
mod senders;
mod signals;
mod spin;
mod stops;
mod threads;
