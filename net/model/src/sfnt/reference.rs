//! The published tables of sfnt-pingpong over Onload, from 2019.
//!
//! They are doubtful. Both ends ran on CPU 1 of one host and the address was 127.0.0.1, which Onload does not accelerate
//! unless EF_TCP_CLIENT_LOOPBACK is set; the header does not show it. They show the format, not the speed of a NIC.

use super::{SfntError, SfntLog, parse};

const TCP: &str = include_str!("reference/tcp.txt");
const UDP: &str = include_str!("reference/udp.txt");
/// Mistakes in the text that the tables were published with.
pub const MISTAKES: [&str; 3] = [
    "--maxms is the time per size in milliseconds, not the largest packet.",
    "7.875 us is the 99th percentile of 32 bytes over TCP. The longest is 15.773 us.",
    "The standard deviation of 32 bytes over TCP is 384 ns, not 364 ns.",
];

/// Returns both tables: TCP, UDP.
///
/// # Errors
/// [`SfntError`] if this version cannot parse them, which a test excludes.
pub fn published() -> Result<Vec<SfntLog>, SfntError> {
    let mut logs = parse(TCP)?;
    logs.extend(parse(UDP)?);
    Ok(logs)
}
