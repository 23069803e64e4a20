//! The role: what the user wants of the host.

mod file;

pub use file::{RoleError, RoleFile};

use crate::{CpuSet, Profile};
use serde::{Deserialize, Serialize};

/// What the user wants of the host. Everything is optional; the default leaves every choice to lowlat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Role {
    /// The profile to judge by.
    pub profile: Profile,
    /// CPUs for housekeeping; chosen by the allocation when none are named.
    pub housekeeping: Option<CpuSet>,
    /// CPUs to isolate; all others when none are named.
    pub isolated: Option<CpuSet>,
    /// Interfaces that carry trading traffic; every physical one when none are named.
    pub nics: Vec<String>,
    /// Ids of settings whose risk the user accepts.
    pub accepted_risks: Vec<String>,
}

impl Role {
    /// Whether the user accepts the risk of this setting.
    pub fn accepts(&self, setting_id: &str) -> bool {
        self.accepted_risks.iter().any(|id| id == setting_id)
    }
}
