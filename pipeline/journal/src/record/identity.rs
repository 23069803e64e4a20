//! Identity of a recording.

use rustix::{
    rand::{GetRandomFlags, getrandom},
    time::{ClockId, clock_gettime},
};
use std::{fs, io};

/// Source of the times in file heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    #[default]
    System,
    /// One moment, such as that of the recording whose time the recorded run has.
    Fixed {
        /// CLOCK_MONOTONIC, ns.
        monotonic_ns: u64,
        /// CLOCK_REALTIME, ns.
        realtime_ns: u64,
    },
}

impl Clock {
    /// Monotonic and real time, ns.
    pub fn now_ns(self) -> (u64, u64) {
        match self {
            Self::System => (read_ns(ClockId::Monotonic), read_ns(ClockId::Realtime)),
            Self::Fixed { monotonic_ns, realtime_ns } => (monotonic_ns, realtime_ns),
        }
    }
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Number, boot and clock of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// A number unique to the recording.
    pub recording: u64,
    /// Id of the boot; zeros if unknown.
    pub boot_id: [u8; 16],
    pub clock: Clock,
}

impl Identity {
    /// The identity of a new recording.
    pub fn new() -> io::Result<Self> {
        let mut number = [0; 8];
        // Up to 256 bytes come whole.
        getrandom(&mut number, GetRandomFlags::empty())?;
        Ok(Self { recording: u64::from_le_bytes(number), boot_id: boot_id(), clock: Clock::System })
    }
}

/// The present boot; zeros if unknown.
pub fn boot_id() -> [u8; 16] {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    uuid(&text).unwrap_or_default()
}

fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32).map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_recordings_have_different_numbers_and_the_same_boot() {
        let (one, other) = (Identity::new().unwrap(), Identity::new().unwrap());
        assert_ne!(one.recording, other.recording);
        assert_eq!(one.boot_id, other.boot_id);
        assert_eq!(uuid("x"), None);
    }
}
