//! Formats of market data feeds and order gateways, as `docs/feed.md` describes them: quotes in datagrams, the
//! sequence of a feed, and messages of orders.
//!
//! Pure: no I/O, no clock, no sockets. Decoders allocate nothing, and accept any bytes.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod bytes;
pub mod gateway;
pub mod itch;
pub mod quotes;
pub mod sequence;

use thiserror::Error;

/// Largest datagram of a feed: the payload of an Ethernet frame without fragments, over IPv4.
pub const DATAGRAM_BYTES_MAX: usize = 1472;

/// Why bytes are not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// Too short for what they announce.
    #[error("found {found} bytes, expected {expected}")]
    Length {
        /// Bytes available.
        found: usize,
        /// Bytes announced.
        expected: usize,
    },
    /// Another format.
    #[error("found {found:#x} as {field}, expected {expected:#x}")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        found: u64,
        /// The value of this format.
        expected: u64,
    },
}

/// What a datagram of a feed contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// This many messages.
    Messages(u16),
    /// None: it announces the next sequence number.
    Heartbeat,
    /// None: the session has ended before the sequence number.
    End,
}

/// Head of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The session, within which sequence numbers are unique.
    pub session: u64,
    /// Sequence number of the first message, or of the next one if there is none.
    pub sequence: u64,
    /// The content.
    pub content: Content,
}

impl Head {
    /// Number of messages.
    pub fn count(&self) -> u16 {
        if let Content::Messages(count) = self.content { count } else { 0 }
    }
}

impl Content {
    /// The content that a number of messages stands for, in both formats.
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
