//! The plan as a document.

use super::HostMark;
use lowlat_host::{CpuSet, Profile, Reading, Role, RoleSource};
use lowlat_settings::{
    Checked, Claim,
    change::{BootToken, Change, Target, WhyLeftOut},
};
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
    /// The role that it was made for; none in plans of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The changes, in the order of applying.
    pub changes: Vec<Change>,
    /// Settings for which nothing, or not everything, is planned. A setting can be here and among the
    /// changes.
    pub left_out: Vec<LeftOut>,
    /// Warnings for the user before applying, one or two sentences each.
    pub warnings: Vec<String>,
    /// The warning that lowlat does not support the host's processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// Reasons why `tune apply` would refuse the plan or parts of it on this host, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hindrances: Vec<String>,
}

impl Plan {
    pub const DOCUMENT: &str = "lowlat-plan";
    pub const SCHEMA_VERSION: u32 = 1;

    /// Derives the plan's ID from its content: plans with the same ID have the same changes for the same
    /// host.
    pub fn id(&self) -> String {
        // Maps and fields are ordered, so equal plans are equal text.
        lowlat_host::digest(&serde_json::to_string(&(&self.host, &self.changes)).unwrap_or_default())
    }

    /// Counts the applicable settings that were checked.
    pub fn checked(&self) -> Checked {
        let is_unknown = |left: &&LeftOut| left.why == WhyLeftOut::Unknown;
        let is_checked = |left: &&LeftOut| !is_unknown(left) && left.why != WhyLeftOut::NotApplicable;
        let changed = self.changes.iter().flat_map(|change| &change.settings);
        let mut checked: Vec<&String> =
            self.left_out.iter().filter(is_checked).map(|left| &left.setting).chain(changed).collect();
        checked.sort_unstable();
        checked.dedup();
        Checked { checked: checked.len(), unknown: self.left_out.iter().filter(is_unknown).count() }
    }

    /// The plan's claim: changes are needed, none are needed, or too little was checked to say.
    pub fn claim(&self) -> Claim {
        self.checked().claim(!self.changes.is_empty())
    }

    /// The role that hosts are judged by while the plan is in force: its own, with the CPUs that it chose.
    pub fn role_in_force(&self) -> Role {
        let cpus = |cpus: &CpuSet| Some(cpus.clone()).filter(|cpus| !cpus.is_empty());
        Role {
            profile: self.profile,
            housekeeping: cpus(&self.housekeeping),
            isolated: cpus(&self.isolated),
            source: RoleSource::InForce,
            ..self.role.clone().unwrap_or_else(|| self.role_of_changes(Vec::new()))
        }
    }

    /// Leaves every change out: none can be made here, because of `why`.
    pub fn leave_all_out(&mut self, why: &str) {
        for change in std::mem::take(&mut self.changes) {
            self.left_out.extend(change.settings.into_iter().map(|setting| LeftOut {
                setting,
                layer: change.layer.clone(),
                why: WhyLeftOut::Hardware,
                text: why.to_owned(),
            }));
        }
    }

    /// The parameters of the plan's command line; none if it does not change it.
    pub fn boot_tokens(&self) -> Option<&[BootToken]> {
        self.changes.iter().find_map(|change| match &change.target {
            Target::CommandLine { tokens } => Some(tokens.as_slice()),
            _ => None,
        })
    }

    /// True if a part of the plan needs a reboot.
    pub fn needs_reboot(&self) -> bool {
        self.boot_tokens().is_some()
    }
}

/// A setting for which nothing, or not everything, is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub setting: String,
    pub layer: String,
    pub why: WhyLeftOut,
    pub text: String,
}
