//! Jitter.
