//! Errors in saved Redfish JSON.

use super::reader::BYTES_MAX;
use serde_json::Value;

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

/// The JSON of a file, within the size limit.
pub(super) fn parse(file: &str, bytes: &[u8]) -> Result<Value, BiosError> {
    if bytes.len() > BYTES_MAX {
        return Err(BiosError(format!(
            "cannot read {file}: it has more than {BYTES_MAX} bytes, and a Bios resource or registry is smaller\nhint: name \
             the right file"
        )));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| {
        BiosError(format!(
            "cannot parse {file} as JSON: {error}\nhint: save the unmodified response of GET /redfish/v1/Systems/ID/Bios"
        ))
    })
}
