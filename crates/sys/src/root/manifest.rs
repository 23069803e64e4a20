//! What a capture says of itself.

use super::Root;
use lowlat_host::snapshot::{Origin, OriginKind};
use serde::{Deserialize, Serialize};

/// Where it stands.
pub(crate) const PATH: &str = "/.lowlat/manifest.json";

/// The manifest of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Version of the capture's shape; grows when something changes its meaning.
    pub(crate) schema_version: u32,
    /// The version of lowlat that wrote it.
    pub(crate) lowlat_version: String,
    /// Whether names, addresses and serials were overwritten.
    pub(crate) is_redacted: bool,
    /// Whether root read the host.
    pub(crate) is_privileged: bool,
    /// What was read: the running host, a directory or another capture.
    pub(crate) source: OriginKind,
}

impl Manifest {
    const SCHEMA_VERSION: u32 = 1;

    /// A capture of a redacted capture is redacted too.
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

    /// The manifest of a capture, when it has one that can be understood.
    pub(crate) fn read(root: &Root) -> Option<Self> {
        serde_json::from_str(root.read(PATH).text()).ok()
    }
}
