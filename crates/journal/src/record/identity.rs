//! What a recording is told apart by.

use rustix::time::{ClockId, clock_gettime};
use std::{fs, io};

/// Where the times in file heads come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The system's clocks.
    System,
    /// These values, for tests.
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

/// A recording's number, boot and clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// A number that no other recording has.
    pub recording: u64,
    /// The boot in which it is made; zeros when unknown.
    pub boot_id: [u8; 16],
    /// Its clock.
    pub clock: Clock,
}

impl Identity {
    /// That of a new recording.
    pub fn new() -> io::Result<Self> {
        // 122 of a UUID's bits are random; those folded here are, but for four.
        let uuid = uuid(&fs::read_to_string("/proc/sys/kernel/random/uuid")?);
        let uuid = uuid.ok_or_else(|| io::Error::other("/proc/sys/kernel/random/uuid holds no UUID"))?;
        let (low, high) = uuid.split_at(8);
        let word = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        Ok(Self { recording: word(low) ^ word(high), boot_id: boot_id(), clock: Clock::System })
    }
}

/// The present boot; zeros when the system does not tell.
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
    fn two_recordings_have_two_numbers_and_one_boot() {
        let (one, other) = (Identity::new().unwrap(), Identity::new().unwrap());
        assert_ne!(one.recording, other.recording);
        assert_eq!(one.boot_id, other.boot_id);
        assert_eq!(uuid("x"), None);
    }
}
