use super::*;
use proptest::{collection::vec, prelude::*};

fn head() -> FrameHead {
    FrameHead { stream: 3, run: 1_700_000_000_000_000_000, epoch: 2, sequence: 41, void: 1 }
}

fn stamp() -> Stamp {
    Stamp { kind: 1, schema: 2, instrument: 7, source: 3, generated: 10, trigger: 9, cause: 8 }
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = vec![0xaa; 3];
    frame.encode(&mut bytes);
    bytes
}

fn record(payload: &[u8]) -> Vec<u8> {
    encoded(&Frame { head: head(), body: Body::Record { stamp: stamp(), payload } })
}

/// Changes bytes and corrects the checksum, like an attacker.
fn forged(mut bytes: Vec<u8>, at: usize, with: &[u8]) -> Vec<u8> {
    bytes[at..at + with.len()].copy_from_slice(with);
    let check = check_of(&bytes).to_le_bytes();
    bytes[at::CHECK..at::GENERATED].copy_from_slice(&check);
    bytes
}

fn error(bytes: &[u8]) -> String {
    Frame::decode(bytes).unwrap_err().to_string()
}

/// The layout as documented, byte for byte.
#[test]
fn the_layout_is_as_documented() {
    let bytes = record(b"abc");
    assert_eq!(bytes.len(), HEAD_BYTES + 3);
    assert_eq!(&bytes[..8], b"LLBR\x01\x00\x01\x00");
    assert_eq!((&bytes[8..12], &bytes[12..16]), (&[3, 0, 0, 0][..], &[3, 0, 0, 0][..]));
    assert_eq!(bytes[16..24], 1_700_000_000_000_000_000_u64.to_le_bytes());
    assert_eq!((bytes[24], bytes[32], bytes[40]), (2, 41, 1));
    assert_eq!((bytes[48], bytes[50], bytes[52], bytes[56]), (1, 2, 7, 3));
    assert_eq!((bytes[64], bytes[72], bytes[80], &bytes[88..]), (10, 9, 8, &b"abc"[..]));
}

#[test]
fn invalid_frames_are_described() {
    assert!(error(&[]).contains("0 bytes, expected 88 or more"));
    let mut foreign = record(b"x");
    foreign[..4].copy_from_slice(b"HTTP");
    assert!(error(&foreign).contains("another program sends"));
    assert!(error(&forged(record(b"x"), at::VERSION, &[9, 0])).contains("frame version 9"));
    let mut cut = record(b"payload");
    cut.pop();
    assert!(error(&cut).contains("the stated 7"), "{}", error(&cut));
    assert!(error(&forged(record(b"x"), at::BODY_BYTES, &[0xff; 4])).contains("4294967295"));
}

#[test]
fn an_invalid_field_is_named() {
    let cases: [(usize, &[u8], &str); 9] = [
        (at::WHAT, &[3, 0], "what: found 3"),
        (at::STREAM, &[0, 4, 0, 0], "stream: found 1024"),
        (at::RUN, &[0; 8], "run: found 0"),
        (at::EPOCH, &[0; 8], "epoch: found 0"),
        (at::SEQUENCE, &[0; 8], "sequence: found 0"),
        (at::SEQUENCE, &[0xff; 8], "sequence: found 18446744073709551615"),
        (at::VOID, &[42], "void: found 42"),
        (at::KIND, &[0xff, 0xff], "kind: found 65535"),
        // A record's payload in place of a name.
        (at::WHAT, &[2, 0], "name: found \"../x\""),
    ];
    for (at, with, words) in cases {
        let error = error(&forged(record(b"../x"), at, with));
        assert!(error.contains(words), "{error} should have {words}");
    }
}

#[test]
fn a_standing_may_not_know_the_number() {
    let head = FrameHead { sequence: 0, void: 0, ..head() };
    let frame = Frame { head, body: Body::Standing { name: "orders.s-1" } };
    assert_eq!(Frame::decode(&encoded(&frame)), Ok(frame));
}

fn heads() -> impl Strategy<Value = FrameHead> {
    (0..STREAMS_MAX, 1_u64.., 1_u64.., 1..=SEQUENCE_MAX, any::<u64>()).prop_map(
        |(stream, run, epoch, sequence, void)| FrameHead {
            stream,
            run,
            epoch,
            sequence,
            void: void % sequence,
        },
    )
}

fn stamps() -> impl Strategy<Value = Stamp> {
    (0..KIND_RESERVED_MIN, any::<u16>(), any::<[u32; 2]>(), any::<[u64; 3]>()).prop_map(
        |(kind, schema, [instrument, source], [generated, trigger, cause])| Stamp {
            kind,
            schema,
            instrument,
            source,
            generated,
            trigger,
            cause,
        },
    )
}

proptest! {
    #[test]
    fn what_is_sent_arrives(head in heads(), stamp in stamps(), payload in vec(any::<u8>(), 0..300)) {
        let frame = Frame { head, body: Body::Record { stamp, payload: &payload } };
        let bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn names_arrive(head in heads(), name in "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,63}") {
        let frame = Frame { head, body: Body::Standing { name: &name } };
        let bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn every_changed_bit_is_found(payload in vec(any::<u8>(), 0..100), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = record(&payload);
        let at = at.index(bytes.len());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(Frame::decode(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_refused_or_read_back(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Frame::decode(&bytes).is_err());
    }

    /// With a correct checksum, which anybody can compute: whatever is accepted equals the fields, and nothing
    /// panics.
    #[test]
    fn forged_heads_are_refused_or_right(words in vec(any::<u8>(), HEAD_BYTES - 8..HEAD_BYTES + 40), is_small in any::<bool>()) {
        let mut bytes = b"LLBR\x01\x00".to_vec();
        bytes.extend_from_slice(&[1 + u8::from(words[0] > 128), 0]);
        bytes.extend_from_slice(&words);
        if is_small {
            // Mostly with fields in their ranges.
            for field in [at::STREAM, at::RUN, at::EPOCH, at::SEQUENCE, at::VOID] {
                bytes[field + 1..field + 4].fill(0);
            }
            for field in [at::RUN, at::EPOCH, at::SEQUENCE, at::VOID] {
                bytes[field + 4..field + 8].fill(0);
            }
            bytes[at::VOID] = 0;
        }
        let body_bytes = u32::try_from(bytes.len() - HEAD_BYTES).unwrap_or(0).to_le_bytes();
        let bytes = forged(bytes, at::BODY_BYTES, &body_bytes);
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert!(frame.head.stream < STREAMS_MAX && frame.head.void <= frame.head.sequence);
            if let Body::Record { .. } = frame.body {
                prop_assert_eq!(encoded(&frame), bytes);
            }
        }
    }
}
