//! Errors in saved Redfish JSON.

use super::reader::BYTES_MAX;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::{borrow::Cow, io::Read};

/// Error in saved JSON that cannot be audited. Every message suggests a next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BiosError(pub(super) String);

impl BiosError {
    /// More resources, attributes or dependencies than any server has.
    pub(super) fn too_many(file: &str, path: &str, what: &str, max: usize) -> Self {
        Self(format!(
            "cannot parse {file}: it has more than {max} {what} at {path}, more than any server\nhint: name the right file"
        ))
    }

    /// A restore file for another server, or for another BIOS of it.
    pub(super) fn other_server(file: &str, why: &str) -> Self {
        Self(format!(
            "cannot use {file}: it restores another server or BIOS: {why}\nhint: name the file that was written for this \
             one"
        ))
    }
}

/// The first bytes of gzip (RFC 1952). Some controllers store their registries so.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The JSON of a file, within the size limit, packed with gzip or not.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Value, BiosError> {
    check_size(file, bytes)?;
    let bytes = &*unpacked(file, bytes)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| {
        BiosError(format!(
            "cannot parse {file} as JSON: {error}\nhint: save the unmodified response of GET /redfish/v1/Systems/ID/Bios"
        ))
    })
}

fn check_size(file: &str, bytes: &[u8]) -> Result<(), BiosError> {
    if bytes.len() <= BYTES_MAX {
        return Ok(());
    }
    Err(BiosError(format!(
        "cannot read {file}: it has more than {BYTES_MAX} bytes, and a Bios resource or registry is smaller\nhint: name \
         the right file"
    )))
}

/// The bytes of a file, unpacked if they are packed with gzip, within the size limit.
pub fn unpacked<'a>(file: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, BiosError> {
    if !bytes.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut unpacked = Vec::new();
    let limited = GzDecoder::new(bytes).take(BYTES_MAX as u64 + 1).read_to_end(&mut unpacked);
    limited
        .map_err(|error| BiosError(format!("cannot unpack {file} (gzip): {error}\nhint: save it again")))?;
    check_size(file, &unpacked)?;
    Ok(Cow::Owned(unpacked))
}
