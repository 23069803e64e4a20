//! The role: the user's requirements for the host.

mod file;

pub use file::{RoleError, RoleFile};

use crate::{CpuSet, HostSnapshot, Profile, snapshot::Nic};
use serde::{Deserialize, Serialize};

/// The user's requirements for the host. Everything is optional; by default lowlat makes every choice.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Role {
    /// The profile to judge by.
    pub profile: Profile,
    /// CPUs for housekeeping; chosen by the allocation if `None`.
    pub housekeeping: Option<CpuSet>,
    /// CPUs to isolate; all others if `None`.
    pub isolated: Option<CpuSet>,
    /// Interfaces that carry trading traffic; every physical one if empty.
    pub nics: Vec<String>,
    /// IDs of settings whose risk the user accepts.
    pub accepted_risks: Vec<String>,
    /// IDs of settings that are neither judged nor planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// True if the applications on these interfaces busy-poll with epoll, so that interrupts can be suspended while
    /// they find packets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_busy_polling: bool,
    /// True if these interfaces are registered with Onload, which then drives them over AF_XDP.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_using_onload: bool,
    /// True if the isolated CPUs get ways of the cache that housekeeping cannot fill.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partitioning_cache: bool,
    #[serde(default, skip_serializing_if = "IsolateBy::is_boot")]
    pub isolate_by: IsolateBy,
    #[serde(default)]
    pub source: RoleSource,
}

/// Origin of a role; an earlier one has precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleSource {
    /// The user named it.
    Named,
    /// The plan in force was made for it.
    InForce,
    /// It is installed in /etc/lowlat.
    Installed,
    /// The host already isolates its CPUs.
    Isolation,
    /// Nothing names one, so lowlat chooses.
    #[default]
    Own,
}

/// Method of isolating CPUs from the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolateBy {
    /// Boot parameters: isolcpus=, nohz_full=, rcu_nocbs=.
    #[default]
    Boot,
    /// An isolated cpuset partition, which takes effect without a reboot.
    Cpuset,
}

impl IsolateBy {
    /// The names in role files and on the command line.
    pub const NAMES: [&str; 2] = ["boot", "cpuset"];

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_boot(&self) -> bool {
        *self == Self::Boot
    }

    /// The choice of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "boot" => Some(Self::Boot),
            "cpuset" => Some(Self::Cpuset),
            _ => None,
        }
    }
}

impl Role {
    /// The interfaces that carry trading traffic: those in the role, or the ones below a bond, bridge, VLAN or macvlan;
    /// without any in the role, every physical one that is not down.
    pub fn trading_nics<'a>(&self, host: &'a HostSnapshot) -> impl Iterator<Item = &'a Nic> + use<'a, '_> {
        let is_in_use = |nic: &Nic| nic.is_physical && nic.operstate.text() != "down";
        let carriers = host.carriers_of(&self.nics);
        host.nics.iter().filter(move |nic| {
            if self.nics.is_empty() { is_in_use(nic) } else { carriers.contains(&nic.name) }
        })
    }

    /// True if the user accepts the risk of this setting.
    pub fn accepts(&self, setting_id: &str) -> bool {
        self.accepted_risks.iter().any(|id| id == setting_id)
    }

    /// True if the user leaves this setting as it is.
    pub fn leaves_out(&self, setting_id: &str) -> bool {
        self.left_out.iter().any(|id| id == setting_id)
    }
}
