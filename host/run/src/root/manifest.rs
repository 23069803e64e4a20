//! The metadata of a capture.

use super::Root;
use lowlat_host::snapshot::{Origin, OriginKind};
use serde::{Deserialize, Serialize};

/// Path of the manifest in a capture.
pub(crate) const PATH: &str = "/.lowlat/manifest.json";

/// The manifest of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the capture's format; increases when the meaning of something changes.
    pub(crate) schema_version: u32,
    /// The version of lowlat that wrote it.
    pub(crate) lowlat_version: String,
    /// True if names, addresses and serials were overwritten.
    pub(crate) is_redacted: bool,
    /// True if root read the host.
    pub(crate) is_privileged: bool,
    /// Origin of the capture: the running host, a directory or another capture.
    pub(crate) source: OriginKind,
}

impl Manifest {
    const SCHEMA_VERSION: u32 = 1;

    /// A capture of a redacted capture is also redacted.
    pub(crate) fn new(origin: &Origin, is_redacted: bool) -> Self {
        Self {
            schema_version: Self::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_redacted: is_redacted || origin.is_redacted,
            is_privileged: origin.is_privileged,
            source: origin.kind,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// The manifest of a capture, if it has a readable one.
    pub(crate) fn read(root: &Root) -> Option<Self> {
        serde_json::from_str(root.read(PATH).text()).ok()
    }
}
