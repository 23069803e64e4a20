//! Short digests that identify hosts and plans.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The first 16 digits of the SHA-256 of a text, to identify hosts and plans.
pub fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold(String::with_capacity(16), |mut digits, byte| {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        // Test vectors of SHA-256 (FIPS 180-4), their first 64 bits.
        assert_eq!(digest(""), "e3b0c44298fc1c14");
        assert_eq!(digest("abc"), "ba7816bf8f01cfea");
    }
}
