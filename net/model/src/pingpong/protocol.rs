//! Control protocol between client and server: frames over TCP, version 2.
//!
//! A frame is 10 bytes of head and a body in JSON. The head: `LWPP`, the version, the length of the body; numbers are
//! big-endian. Both directions use it. The server accepts two first frames on a connection: [`Message::Open`] makes it
//! the control connection of a run, [`Message::Join`] the data connection of an open run.

use super::{CpuUse, EndFacts, IrqSuspend, Scenario, parts::Stamps};
use crate::{stream::Received, xdp::XdpFacts};
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of the protocol. A change of a message increases it.
pub const VERSION: u16 = 2;
/// First bytes of every frame.
const MAGIC: [u8; 4] = *b"LWPP";
/// Length of a frame's head.
pub const HEAD_BYTES: usize = 10;
/// Longest body of a frame.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// Most messages of a batch with time stamps, one more than counted: both ends keep their stamps until its end.
pub const STAMPED_BATCH_MAX: u64 = 1_025;
/// Most rows of a [`Message::Stamps`], so that every row fits whatever its numbers.
pub const STAMPS_PER_FRAME: usize = 300;

/// Message of the control protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Message {
    /// Client: starts a run.
    Open { scenario: Scenario, client: Box<EndFacts> },
    /// Server: accepts the run.
    Opened {
        /// Names the run in [`Message::Join`].
        token: String,
        server: Box<EndFacts>,
        /// Its UDP port, if the scenario uses UDP.
        udp_port: Option<u16>,
        /// True if the server takes time stamps, in a scenario that asks for parts.
        has_stamps: bool,
    },
    /// Client: announces its UDP port.
    Peer { udp_port: u16 },
    /// Client, on a second connection: makes it the data connection of a run.
    Join {
        /// Token of the run, from `Opened`.
        token: String,
    },
    /// Server: the data connection is open, or the UDP socket is connected.
    Joined {
        /// Mode and queues that the kernel granted it, if it uses AF_XDP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        xdp: Option<XdpFacts>,
    },
    /// Client: so many messages of this size follow, each to be answered with the same size.
    Batch {
        /// Size of each in bytes.
        size_bytes: u32,
        count: u64,
        /// Number of the first, which each message carries (net pingpong numbers messages of datagram transports).
        first: u64,
        /// True if the server is to send its time stamps of the batch before [`Message::Done`].
        is_stamped: bool,
    },
    /// Server: ready for the batch.
    Ready {
        /// Id of the thread that answers.
        thread_id: Option<i32>,
        /// CPU on which its packets arrive (SO_INCOMING_CPU).
        incoming_cpu: Option<CpuId>,
    },
    /// Server: its time stamps of the next messages of the batch, at most [`STAMPS_PER_FRAME`].
    Stamps {
        /// One row for each message, in order.
        rows: Vec<Stamps>,
    },
    /// Server: the batch is complete.
    Done {
        /// The NIC queue that delivered its messages (SO_INCOMING_NAPI_ID).
        napi_id: Option<u32>,
        /// Suspension of that queue's interrupts, if the scenario suspends them.
        irq_suspend: Option<IrqSuspend>,
        /// CPU time of its thread during the batch, if that is known.
        cpu: Option<CpuUse>,
        /// Messages that came after they had been given up, and messages that came again.
        strays: [u64; 2],
        /// For how long a quota of CPU time stopped its threads during the batch.
        throttled_ns: u64,
    },
    /// Client: a round of a stream follows; its messages are not answered.
    Round {
        /// Number of the round, which its messages carry.
        round: u32,
        /// Size of each in bytes.
        size_bytes: u32,
        /// Upper limit of the messages that follow.
        count: u64,
        /// Frequency of the counter, if both ends share it: the server measures latency.
        counter_hz: Option<u64>,
    },
    /// Server: the round has ended.
    RoundDone {
        received: Box<Received>,
        /// The NIC queue that delivered its messages (SO_INCOMING_NAPI_ID).
        napi_id: Option<u32>,
    },
    /// Client: the run has ended.
    End,
    /// Server: refuses, with the cause.
    Refused {
        /// Cause, without "cannot".
        why: String,
    },
}

/// Reason why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The first bytes are not those of the protocol.
    #[error("the peer does not speak the protocol of lowlat net pingpong")]
    Magic,
    /// The peer speaks another version.
    #[error("the peer speaks version {0} of the protocol, this lowlat version {VERSION}")]
    Version(u16),
    /// The body is too long.
    #[error("a frame of {0} bytes; at most {BODY_BYTES_MAX} are allowed")]
    TooLong(u32),
    /// The body is not a message.
    #[error("a damaged frame: {0}")]
    Body(String),
}

/// Encodes a message as a frame.
pub fn encode(message: &Message) -> Vec<u8> {
    // Messages have no maps with other keys than strings, so they serialize.
    let body = serde_json::to_vec(message).unwrap_or_default();
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    [&MAGIC[..], &VERSION.to_be_bytes(), &length.to_be_bytes(), &body].concat()
}

/// Returns the length of the body that follows a head.
///
/// # Errors
/// [`ProtocolError`] if the head is not one of this version, or announces too long a body.
pub fn body_bytes(head: [u8; HEAD_BYTES]) -> Result<usize, ProtocolError> {
    let [m0, m1, m2, m3, v0, v1, length @ ..] = head;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(ProtocolError::Magic);
    }
    let version = u16::from_be_bytes([v0, v1]);
    if version != VERSION {
        return Err(ProtocolError::Version(version));
    }
    let length = u32::from_be_bytes(length);
    usize::try_from(length)
        .ok()
        .filter(|bytes| *bytes <= BODY_BYTES_MAX)
        .ok_or(ProtocolError::TooLong(length))
}

/// Decodes the body of a frame.
///
/// # Errors
/// [`ProtocolError::Body`] if it is not a message.
pub fn decode(body: &[u8]) -> Result<Message, ProtocolError> {
    serde_json::from_slice(body).map_err(|error| ProtocolError::Body(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(frame: &[u8]) -> Result<Message, ProtocolError> {
        let head = frame.first_chunk::<HEAD_BYTES>().expect("a head");
        let length = body_bytes(*head)?;
        assert_eq!(length, frame.len() - HEAD_BYTES);
        decode(&frame[HEAD_BYTES..])
    }

    #[test]
    fn every_message_survives() {
        for message in [
            Message::Open { scenario: Scenario::default(), client: Box::default() },
            Message::Opened {
                token: "t".into(),
                server: Box::default(),
                udp_port: Some(7),
                has_stamps: true,
            },
            Message::Peer { udp_port: 9 },
            Message::Join { token: "t".into() },
            Message::Joined { xdp: None },
            Message::Joined { xdp: Some(XdpFacts::default()) },
            Message::Batch { size_bytes: 32, count: 1_000, first: 7, is_stamped: true },
            Message::Ready { thread_id: Some(4), incoming_cpu: None },
            Message::Stamps { rows: vec![Stamps { arrived_ns: Some(1), ..Stamps::default() }] },
            Message::Done {
                napi_id: None,
                irq_suspend: Some(IrqSuspend::default()),
                cpu: Some(CpuUse { cpu_ns: 3, elapsed_ns: 4 }),
                strays: [1, 2],
                throttled_ns: 5,
            },
            Message::Round { round: 1, size_bytes: 32, count: 9, counter_hz: Some(8) },
            Message::RoundDone { received: Box::default(), napi_id: Some(7) },
            Message::End,
            Message::Refused { why: "busy".into() },
        ] {
            assert_eq!(decoded(&encode(&message)), Ok(message));
        }
    }

    #[test]
    fn the_frame_is_the_documented_one() {
        let frame = encode(&Message::End);
        assert_eq!(frame, b"LWPP\0\x02\0\0\0\x11{\"message\":\"end\"}");
        assert_eq!(decode(b"{\"message\":\"joined\"}"), Ok(Message::Joined { xdp: None }));
    }

    #[test]
    fn a_frame_of_stamps_fits_whatever_its_numbers() {
        let widest = Some(u64::MAX);
        let row = Stamps {
            sending_ns: widest,
            queued_ns: widest,
            sent_ns: widest,
            arrived_ns: widest,
            received_ns: widest,
            sent_by_nic_ns: widest,
            arrived_at_nic_ns: widest,
        };
        let frame = encode(&Message::Stamps { rows: vec![row; STAMPS_PER_FRAME] });
        assert!(frame.len() - HEAD_BYTES <= BODY_BYTES_MAX, "{}", frame.len());
    }

    #[test]
    fn hostile_heads_and_bodies_are_refused() {
        let mut frame = encode(&Message::Ready { thread_id: None, incoming_cpu: None });
        frame[5] = 1;
        assert_eq!(decoded(&frame), Err(ProtocolError::Version(1)));
        assert_eq!(body_bytes(*b"GET / HTTP"), Err(ProtocolError::Magic));
        assert_eq!(body_bytes(*b"LWPP\0\x02\xff\xff\xff\xff"), Err(ProtocolError::TooLong(u32::MAX)));
        for body in [&b""[..], b"{}", b"[]", b"{\"message\":\"dance\"}", b"[[[[[[[[[["] {
            assert!(matches!(decode(body), Err(ProtocolError::Body(_))), "{body:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(head: [u8; HEAD_BYTES], body in proptest::collection::vec(0u8..=255, 0..200)) {
            let _ = (body_bytes(head), decode(&body));
        }
    }
}
