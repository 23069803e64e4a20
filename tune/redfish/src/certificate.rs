//! What is read of a certificate besides its verification: its key and its fingerprint.

use sha2::{Digest as _, Sha256};

/// SHA-256 of the whole certificate, as browsers and `openssl x509 -fingerprint -sha256` print it.
pub(crate) fn fingerprint(certificate: &[u8]) -> [u8; 32] {
    Sha256::digest(certificate).into()
}

/// The fingerprint as `--pin` takes it.
pub(crate) fn shown(fingerprint: &[u8; 32]) -> String {
    let digits: String = fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Parses `sha256:` and 64 hexadecimal digits, with or without colons.
pub(crate) fn parse(text: &str) -> Option<[u8; 32]> {
    let (name, digits) = text.trim().split_once(':')?;
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    if !name.eq_ignore_ascii_case("sha256") || digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    let mut fingerprint = [0; 32];
    for (byte, at) in fingerprint.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(fingerprint)
}

/// The subjectPublicKeyInfo of a certificate of any version (RFC 5280, section 4.1), in DER.
pub(crate) fn public_key(certificate: &[u8]) -> Option<&[u8]> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // Only versions 2 and 3 have a version field.
    if fields.first() == Some(&0xa0) {
        fields = element(fields)?.2;
    }
    // Serial number, signature algorithm, issuer, validity, subject.
    for _ in 0..5 {
        fields = element(fields)?.2;
    }
    let (whole, _, _) = element(fields)?;
    Some(whole)
}

/// The first DER element: whole, its content, and what follows.
fn element(der: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (first, after) = der.get(1..)?.split_first()?;
    let (length, content) = match usize::from(*first) {
        length @ 0..0x80 => (length, after),
        // At most four bytes of length.
        long => {
            let (bytes, content) =
                after.split_at_checked(long - 0x80).filter(|(bytes, _)| bytes.len() <= 4)?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), content)
        }
    };
    let (content, rest) = content.split_at_checked(length)?;
    let whole = der.get(..der.len() - rest.len())?;
    Some((whole, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::PublicKeyData as _;

    #[test]
    fn the_key_is_that_which_the_certificate_was_made_for() {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate =
            rcgen::CertificateParams::new(["bmc".to_owned()]).unwrap().self_signed(&key).unwrap();
        assert_eq!(public_key(certificate.der()), Some(key.subject_public_key_info().as_slice()));
        for end in 0..certificate.der().len() {
            assert_eq!(public_key(&certificate.der()[..end]), None, "{end}");
        }
        assert_eq!(public_key(&[0x30, 0xff, 1]), None);
    }

    #[test]
    fn fingerprints_are_read_as_they_are_printed() {
        let mark = fingerprint(b"certificate");
        assert_eq!(parse(&shown(&mark)), Some(mark));
        let digits = shown(&mark).split_off(7).to_uppercase();
        let pairs: Vec<&str> = (0..64).step_by(2).map(|at| &digits[at..at + 2]).collect();
        assert_eq!(parse(&format!("SHA256:{}", pairs.join(":"))), Some(mark));
        for wrong in
            ["", "sha256:", "sha1:00", &digits, &format!("sha256:{}zz", &digits[2..]), "sha256:\u{e9}"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
