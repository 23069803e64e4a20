//! Names of contents.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 in hexadecimal: 64 letters.
pub(super) fn of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two lower-case letters per byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes encoded by [`hex`].
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
