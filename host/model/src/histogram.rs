//! Histograms as text: HdrHistogram V2, deflated, base64, as in the log files of every HdrHistogram port.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::io::Read;

/// Maximum number of characters decoded; a histogram with six million cells is far smaller.
pub const TEXT_CHARS_MAX: usize = 16 << 20;
/// Maximum size of the inflated part in bytes. A cell takes at most nine.
const INFLATED_BYTES_MAX: u64 = 64 << 20;
/// Length of the V2 header: cookie, payload length, offset, digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;
/// Highest value that a histogram may track; above it the bucket arithmetic of readers can overflow.
const HIGHEST_MAX: u64 = 1 << 60;
/// Highest lowest-discernible value, for the same reason.
const LOWEST_MAX: u64 = 1 << 30;

/// Error for a text that is not a histogram.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HistogramError(String);

/// Encodes a histogram as text.
pub fn encode(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    // Only a count above i64::MAX cannot be encoded, and no run counts that far.
    if written.is_err() {
        bytes.clear();
    }
    STANDARD.encode(bytes)
}

/// Decodes a histogram from text. Hostile text costs bounded memory and never panics.
///
/// # Errors
/// If the text is too long, not base64, or not a deflated V2 histogram.
pub fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.len() > TEXT_CHARS_MAX {
        return Err(HistogramError(format!(
            "histogram of {} characters; at most {TEXT_CHARS_MAX} are supported",
            text.len()
        )));
    }
    let bytes = STANDARD
        .decode(text.trim())
        .map_err(|error| HistogramError(format!("histogram is not base64: {error}")))?;
    let inflated = inflate(&bytes)?;
    check(&inflated)?;
    Deserializer::new().deserialize(&mut inflated.as_slice()).map_err(not_v2)
}

/// Error for text that is not a deflated V2 histogram, or has an impossible header or payload.
fn not_v2(why: impl std::fmt::Display) -> HistogramError {
    HistogramError(format!("histogram is not HdrHistogram V2 deflated: {why}"))
}

/// The plain V2 bytes after the deflated form's own eight-byte header.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, HistogramError> {
    let deflated = bytes.get(8..).ok_or_else(|| not_v2("shorter than its header"))?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(deflated).take(INFLATED_BYTES_MAX).read_to_end(&mut inflated).map_err(not_v2)?;
    Ok(inflated)
}

/// Rejects what the deserializer would trust: a payload length beyond the bytes, a range at the edge of u64,
/// and a run of zeros whose length cannot be negated.
fn check(inflated: &[u8]) -> Result<(), HistogramError> {
    let word = |at: usize| inflated.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_be_bytes);
    let long = |at: usize| inflated.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes);
    let payload = inflated.get(HEADER_BYTES..).ok_or_else(|| not_v2("shorter than its header"))?;
    let length = word(4).and_then(|length| usize::try_from(length).ok());
    if length != Some(payload.len()) {
        return Err(not_v2("the length of the payload differs from the header"));
    }
    if long(16).is_none_or(|low| low > LOWEST_MAX) || long(24).is_none_or(|high| high > HIGHEST_MAX) {
        return Err(not_v2("its range is too wide"));
    }
    // The nine-byte form of u64::MAX is the zigzag encoding of i64::MIN.
    if payload.windows(9).any(|bytes| bytes.iter().all(|byte| *byte == 0xff)) {
        return Err(not_v2("a count is out of range"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 1 << 40, 3).unwrap();
        for value in [100, 250, 250, 1_000, 47_000, 3_000_000_000] {
            histogram.record(value).unwrap();
        }
        histogram
    }

    #[test]
    fn what_is_encoded_decodes_the_same() {
        for histogram in [sample(), Histogram::new_with_bounds(1, 1 << 40, 2).unwrap()] {
            let text = encode(&histogram);
            assert_eq!(decode(&text).unwrap(), histogram, "{text}");
        }
        assert!(encode(&sample()).starts_with("HISTF"), "the start that other ports' logs show");
    }

    #[test]
    fn each_kind_of_damage_is_an_error() {
        let refused = |text: &str| decode(text).unwrap_err().to_string();
        assert!(refused(&"A".repeat(TEXT_CHARS_MAX + 1)).starts_with("histogram of "));
        assert!(refused("not base64!").starts_with("histogram is not base64"));
        assert!(refused("").contains("not HdrHistogram V2"));
        let text = encode(&sample());
        for cut in (0..text.len()).step_by(4) {
            assert!(decode(&text[..cut]).is_err(), "cut at {cut}");
        }
    }

    fn deflated(plain: &[u8]) -> String {
        use std::io::Write;
        let mut deflater = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflater.write_all(plain).unwrap();
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0];
        bytes.extend(deflater.finish().unwrap());
        STANDARD.encode(bytes)
    }

    fn plain(length: u32, digits: u32, low: u64, high: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x13];
        bytes.extend(length.to_be_bytes());
        bytes.extend(0u32.to_be_bytes());
        bytes.extend(digits.to_be_bytes());
        bytes.extend(low.to_be_bytes());
        bytes.extend(high.to_be_bytes());
        bytes.extend(1.0f64.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_header_that_lies_is_refused() {
        assert!(decode(&deflated(&plain(1, 3, 1, 1 << 40, &[2]))).is_ok());
        for lie in [
            plain(u32::MAX, 3, 1, 1 << 40, &[2]),
            plain(1, 3, 1, u64::MAX, &[2]),
            plain(1, 3, u64::MAX, 1 << 40, &[2]),
            plain(1, 9, 1, 1 << 40, &[2]),
            plain(9, 3, 1, 1 << 40, &[0xff; 9]),
        ] {
            let error = decode(&deflated(&lie)).unwrap_err().to_string();
            assert!(error.contains("not HdrHistogram V2"), "{lie:?}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_payload_panics(digits in 0u32..7, low: u64, high: u64, payload in proptest::collection::vec(0u8..=255, 0..64)) {
            let length = u32::try_from(payload.len()).unwrap();
            let _ = decode(&deflated(&plain(length, digits, low >> 40, high, &payload)));
            let _ = decode(&deflated(&plain(length, digits % 5, 1, high >> 20 | 2, &payload)));
        }
    }
}
