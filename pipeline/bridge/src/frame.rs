//! Wire format. Numbers are little-endian; nothing is trusted before [`Frame::decode`] has checked it.
//!
//! ```text
//! offset bytes
//!      0     4  magic "LLBR"
//!      4     2  version of this layout
//!      6     2  type: 1 a record, 2 a standing
//!      8     4  number of the stream in its run: that of the node that writes it
//!     12     4  bytes of the body
//!     16     8  run: its start, ns of the wall clock
//!     24     8  epoch: number of senders of the run, including this one
//!     32     8  sequence: the record's; in a standing the next one, 0 while it is unknown
//!     40     8  void: how many numbers without a record the sender has passed so far
//!     48     2  kind          stamp, as set by the writer; in a standing all 0
//!     50     2  schema
//!     52     4  instrument
//!     56     4  source
//!     60     4  CRC-32C of all other bytes
//!     64     8  generated
//!     72     8  trigger
//!     80     8  cause
//!     88        body: the record's payload, or the stream's name
//! ```
//!
//! A *standing* is sent every 250 ms and whenever a receiver connects. It gives the stream's number a name, and
//! reports the end of a trailing gap.

use lowlat_ipc::{interest::SUBSCRIBERS_MAX, layout::KIND_RESERVED_MIN, stream::Stamp};
use lowlat_node::address::is_name;
use std::fmt;
use thiserror::Error;

/// First bytes of a frame.
pub const MAGIC: [u8; 4] = *b"LLBR";
/// The version of the layout described here.
pub const VERSION: u16 = 1;
/// Bytes before the body.
pub const HEAD_BYTES: usize = 88;
/// Largest body, in bytes: a frame with more than any record of a stream's ring is invalid.
pub const BODY_BYTES_MAX: usize = 1 << 24;
/// Upper bound of stream numbers.
pub const STREAMS_MAX: u32 = SUBSCRIBERS_MAX;
/// The last sequence: a billion records per second reach it after a century, and no arithmetic on it overflows.
pub const SEQUENCE_MAX: u64 = 1 << 62;

const RECORD: u16 = 1;
const STANDING: u16 = 2;

/// Offsets of the fields in the head.
mod at {
    pub const VERSION: usize = super::MAGIC.len();
    pub const WHAT: usize = VERSION + 2;
    pub const STREAM: usize = WHAT + 2;
    pub const BODY_BYTES: usize = STREAM + 4;
    pub const RUN: usize = BODY_BYTES + 4;
    pub const EPOCH: usize = RUN + 8;
    pub const SEQUENCE: usize = EPOCH + 8;
    pub const VOID: usize = SEQUENCE + 8;
    pub const KIND: usize = VOID + 8;
    pub const SCHEMA: usize = KIND + 2;
    pub const INSTRUMENT: usize = SCHEMA + 2;
    pub const SOURCE: usize = INSTRUMENT + 4;
    pub const CHECK: usize = SOURCE + 4;
    pub const GENERATED: usize = CHECK + 4;
    pub const TRIGGER: usize = GENERATED + 8;
    pub const CAUSE: usize = TRIGGER + 8;
}

const _: () = {
    assert!(HEAD_BYTES == at::CAUSE + 8);
    assert!(HEAD_BYTES.is_multiple_of(8) && BODY_BYTES_MAX < u32::MAX as usize);
};

/// Reason why bytes are not a frame: what was found, what was expected, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct FrameError(String);

/// Sender, stream and number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameHead {
    /// Number of the stream in its run, below [`STREAMS_MAX`].
    pub stream: u32,
    /// Start of the run, ns of the origin's wall clock. Later runs have higher numbers.
    pub run: u64,
    /// Number of senders of the run, including this one.
    pub epoch: u64,
    /// The record's number in its stream; in a standing the next number, 0 while it is unknown.
    pub sequence: u64,
    /// Numbers without a record that the sender has passed since its start: those used by restarted writers.
    pub void: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body<'a> {
    /// A record, as its writer made it.
    Record {
        /// Header fields of the record.
        stamp: Stamp,
        payload: &'a [u8],
    },
    /// Name of the stream; its next number is in the head.
    Standing { name: &'a str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub head: FrameHead,
    pub body: Body<'a>,
}

impl<'a> Frame<'a> {
    /// Encodes it into `bytes`, replacing their contents. Does not allocate once `bytes` has held the longest
    /// frame.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        let (what, stamp, body) = match &self.body {
            Body::Record { stamp, payload } => (RECORD, *stamp, *payload),
            Body::Standing { name } => (STANDING, Stamp::default(), name.as_bytes()),
        };
        bytes.clear();
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&what.to_le_bytes());
        bytes.extend_from_slice(&self.head.stream.to_le_bytes());
        // Longer than its field: decoding refuses it, like every body above the maximum.
        bytes.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
        for word in [self.head.run, self.head.epoch, self.head.sequence, self.head.void] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&stamp.kind.to_le_bytes());
        bytes.extend_from_slice(&stamp.schema.to_le_bytes());
        bytes.extend_from_slice(&stamp.instrument.to_le_bytes());
        bytes.extend_from_slice(&stamp.source.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for word in [stamp.generated, stamp.trigger, stamp.cause] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(body);
        let check = check_of(bytes).to_le_bytes();
        if let Some(place) = bytes.get_mut(at::CHECK..at::GENERATED) {
            place.copy_from_slice(&check);
        }
    }

    /// Parses bytes from the network, after checking every field.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let length = |expected: String| {
            let found = bytes.len();
            FrameError(format!(
                "invalid frame of {found} bytes, expected {expected}: truncated, or not sent by lowlat-bridge"
            ))
        };
        let (head_bytes, body) =
            bytes.split_at_checked(HEAD_BYTES).ok_or_else(|| length(format!("{HEAD_BYTES} or more")))?;
        let magic: [u8; 4] = array(head_bytes, 0);
        if magic != MAGIC {
            return Err(FrameError(format!(
                "invalid frame: it starts with {magic:02x?}, expected \"LLBR\"; another program sends to this channel and stream\nhint: use another channel or stream"
            )));
        }
        let version = u16::from_le_bytes(array(head_bytes, at::VERSION));
        if version != VERSION {
            return Err(FrameError(format!(
                "unsupported frame version {version}, expected {VERSION}\nhint: use one version of lowlat-bridge on both hosts"
            )));
        }
        let body_bytes = u32_at(head_bytes, at::BODY_BYTES);
        if body.len() > BODY_BYTES_MAX || u32::try_from(body.len()) != Ok(body_bytes) {
            return Err(length(format!(
                "{HEAD_BYTES} and the stated {body_bytes}, at most {BODY_BYTES_MAX}"
            )));
        }
        let (found, expected) = (u32_at(head_bytes, at::CHECK), check_of(bytes));
        if found != expected {
            return Err(FrameError(format!(
                "damaged frame: found checksum {found:#010x}, expected {expected:#010x}\nhint: check the error counters of the network cards"
            )));
        }
        let what = u16::from_le_bytes(array(head_bytes, at::WHAT));
        let head = head_of(head_bytes, what)?;
        let body = match what {
            RECORD => Body::Record { stamp: stamp_of(head_bytes)?, payload: body },
            _ => Body::Standing { name: name_of(body)? },
        };
        Ok(Self { head, body })
    }
}

fn head_of(bytes: &[u8], what: u16) -> Result<FrameHead, FrameError> {
    let head = FrameHead {
        stream: u32_at(bytes, at::STREAM),
        run: u64_at(bytes, at::RUN),
        epoch: u64_at(bytes, at::EPOCH),
        sequence: u64_at(bytes, at::SEQUENCE),
        void: u64_at(bytes, at::VOID),
    };
    let sequence_min = match what {
        RECORD => 1,
        STANDING => 0,
        found => return Err(value("what", found, "1 (record) or 2 (standing)")),
    };
    if head.stream >= STREAMS_MAX {
        return Err(value("stream", head.stream, "a number below 1,024"));
    }
    if head.run == 0 {
        return Err(value("run", "0", "a time"));
    }
    if head.epoch == 0 {
        return Err(value("epoch", "0", "1 or more"));
    }
    if !(sequence_min..=SEQUENCE_MAX).contains(&head.sequence) {
        return Err(value("sequence", head.sequence, "1 (0 in a standing) to 2^62"));
    }
    if head.void > head.sequence {
        return Err(value("void", head.void, "no more than the sequence"));
    }
    Ok(head)
}

fn stamp_of(bytes: &[u8]) -> Result<Stamp, FrameError> {
    let stamp = Stamp {
        kind: u16::from_le_bytes(array(bytes, at::KIND)),
        schema: u16::from_le_bytes(array(bytes, at::SCHEMA)),
        instrument: u32_at(bytes, at::INSTRUMENT),
        source: u32_at(bytes, at::SOURCE),
        generated: u64_at(bytes, at::GENERATED),
        trigger: u64_at(bytes, at::TRIGGER),
        cause: u64_at(bytes, at::CAUSE),
    };
    if stamp.kind >= KIND_RESERVED_MIN {
        return Err(value("kind", stamp.kind, "a custom kind, below 0xff00"));
    }
    Ok(stamp)
}

fn name_of(body: &[u8]) -> Result<&str, FrameError> {
    let wrong = || {
        let text: String = String::from_utf8_lossy(body).chars().take(80).collect();
        value("name", format!("{text:?}"), "a stream's name")
    };
    std::str::from_utf8(body).ok().filter(|name| is_name(name)).ok_or_else(wrong)
}

fn value(field: &str, found: impl fmt::Display, expected: &str) -> FrameError {
    FrameError(format!(
        "invalid frame: {field}: found {found}, expected {expected}\nhint: use one version of lowlat-bridge on both hosts"
    ))
}

/// Over all bytes except the checksum.
fn check_of(bytes: &[u8]) -> u32 {
    let before = crc32c::crc32c(bytes.get(..at::CHECK).unwrap_or_default());
    crc32c::crc32c_append(before, bytes.get(at::GENERATED..).unwrap_or_default())
}

/// Zeros if there are too few bytes; callers have checked the length.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}

#[cfg(test)]
mod tests;
