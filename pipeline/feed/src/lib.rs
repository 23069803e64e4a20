//! Formats of market data feeds and order gateways, as `docs/feed.md` describes them: quotes in datagrams, the
//! sequence of a feed, and messages of orders.
//!
//! Pure: no I/O, no clock, no sockets. Decoders allocate nothing, and accept any bytes.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod gateway;
pub mod itch;
pub mod quotes;
pub mod sequence;

use thiserror::Error;

/// Largest datagram of a feed: the payload of an Ethernet frame without fragments, over IPv4.
pub const DATAGRAM_BYTES_MAX: usize = 1472;

/// Reason why bytes are not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes are of another length than they announce, or than their format requires.
    #[error("found {found} bytes, expected {expected}")]
    Length {
        found: usize,
        /// Length announced or required by the format, in bytes.
        expected: usize,
    },
    /// A field has a value of another format.
    #[error("found {found:#x} as {field}, expected {expected:#x}")]
    Value {
        field: &'static str,
        found: u64,
        /// The value of this format.
        expected: u64,
    },
}

/// Content of a datagram of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Number of messages, at least 1.
    Messages(u16),
    /// None: it announces the next sequence number.
    Heartbeat,
    /// None: the session has ended before the sequence number.
    End,
}

/// Head of a datagram, in either format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The session, within which sequence numbers are unique.
    pub session: u64,
    /// Sequence number of the first message, or of the next one if there is none.
    pub sequence: u64,
    pub content: Content,
}

impl Head {
    /// Number of messages in the datagram.
    pub fn count(&self) -> u16 {
        if let Content::Messages(count) = self.content { count } else { 0 }
    }
}

impl Content {
    /// The content that a number of messages means, in both formats.
    fn of(count: u16) -> Self {
        match count {
            0 => Self::Heartbeat,
            u16::MAX => Self::End,
            count => Self::Messages(count),
        }
    }

    fn code(self) -> u16 {
        match self {
            Self::Heartbeat => 0,
            Self::End => u16::MAX,
            Self::Messages(count) => count,
        }
    }
}

/// The bytes of a number at a place. What is beyond the end is 0: callers check lengths first.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

/// Writes bytes at a place; nothing if they do not fit.
fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(into) = at.checked_add(bytes.len()).and_then(|end| into.get_mut(at..end)) {
        into.copy_from_slice(bytes);
    }
}
