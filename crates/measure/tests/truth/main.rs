//! Injected truth: the measured CPU is taken for known times at known moments, and each of them must be found, with
//! its length and its cause.
//!
//! Tests compare what they know themselves only: the machine may be busy with anything else, and an interruption may
//! be longer for other reasons. No test asserts an upper time.

mod check;
mod child;
mod host;
mod signals;
mod spin;
mod stops;
mod threads;
