//! The plan as a document.

use super::HostMark;
use lowlat_host::{CpuSet, Profile, Reading};
use lowlat_settings::change::{Change, Target, WhyLeftOut};
use serde::{Deserialize, Serialize};

/// All changes that a profile needs on a host, and all settings for which nothing is planned, with the
/// reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the document: [`Plan::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`Plan::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of lowlat that made the plan.
    pub lowlat_version: String,
    /// The profile whose values are planned.
    pub profile: Profile,
    /// The host that the plan was made for; it applies to no other.
    pub host: HostMark,
    /// The host's boot when the plan was made (/proc/sys/kernel/random/boot_id).
    pub boot_id: Reading<String>,
    /// CPUs that the plan keeps for housekeeping.
    pub housekeeping: CpuSet,
    /// CPUs that the plan isolates.
    pub isolated: CpuSet,
    /// The changes, in the order of applying.
    pub changes: Vec<Change>,
    /// Settings for which nothing, or not everything, is planned. A setting can be here and among the
    /// changes.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user before applying, one or two sentences each.
    pub warnings: Vec<String>,
}

impl Plan {
    /// The document's name.
    pub const DOCUMENT: &str = "lowlat-plan";
    /// The present version of the format.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Derives the plan's ID from its content: plans with the same ID have the same changes for the same
    /// host.
    pub fn id(&self) -> String {
        // Maps and fields are ordered, so equal plans are equal text.
        lowlat_host::digest(&serde_json::to_string(&(&self.host, &self.changes)).unwrap_or_default())
    }

    /// Whether a part of the plan needs a reboot.
    pub fn needs_reboot(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.target, Target::CommandLine { .. }))
    }
}

/// A setting for which nothing, or not everything, is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The setting.
    pub setting: String,
    /// The layer's name.
    pub layer: String,
    /// The kind of reason.
    pub why: WhyLeftOut,
    /// The reason as text.
    pub text: String,
}
