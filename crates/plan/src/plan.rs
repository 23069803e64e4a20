//! The plan as a document.

use super::HostMark;
use lowlat_host::{CpuSet, Profile, Reading};
use lowlat_settings::change::{Change, Target, WhyLeftOut};
use serde::{Deserialize, Serialize};

/// Every change that a profile asks of a host, and every setting for which nothing is planned, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What the document is: [`Plan::DOCUMENT`].
    pub document: String,
    /// Version of the document's shape: [`Plan::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of lowlat that made the plan.
    pub lowlat_version: String,
    /// The profile whose values are planned.
    pub profile: Profile,
    /// The host that the plan was made for; it fits no other.
    pub host: HostMark,
    /// The boot of the host that was looked at (/proc/sys/kernel/random/boot_id).
    pub boot_id: Reading<String>,
    /// CPUs that the plan keeps for housekeeping.
    pub housekeeping: CpuSet,
    /// CPUs that the plan isolates.
    pub isolated: CpuSet,
    /// What would be changed, in the order in which it is to be applied.
    pub changes: Vec<Change>,
    /// Settings for which nothing, or not everything, is planned. A setting can stand here and among the changes.
    pub left_out: Vec<LeftOut>,
    /// What the user should know before applying, one sentence or two each.
    pub warnings: Vec<String>,
}

impl Plan {
    /// What the document calls itself.
    pub const DOCUMENT: &str = "lowlat-plan";
    /// The present version of the shape.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Names the plan by its content: two plans of the same id ask for the same changes of the same host.
    pub fn id(&self) -> String {
        // Maps are ordered and fields have their places, so equal plans are equal text.
        lowlat_host::digest(&serde_json::to_string(&(&self.host, &self.changes)).unwrap_or_default())
    }

    /// Whether a part of the plan takes a reboot.
    pub fn needs_reboot(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.target, Target::CommandLine { .. }))
    }
}

/// A setting for which nothing, or not everything, is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The setting.
    pub setting: String,
    /// The layer, as a word.
    pub layer: String,
    /// The kind of reason.
    pub why: WhyLeftOut,
    /// The reason in words.
    pub text: String,
}
