//! The settings of the catalogue: their type.

use crate::{
    Context, Judgement,
    change::{Proposal, WhyLeftOut, by_layer},
};
use lowlat_host::{Profile, kernel_version::KernelVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One tunable of a host, with everything a user needs to decide on it.
///
/// The text fields are shown to users: plain sentences, units named, and no figure that was not measured or
/// cited.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Stable id, `layer.name` in lower case: "sysctl.kernel.numa_balancing".
    pub id: &'static str,
    pub layer: Layer,
    /// The name as the kernel or vendor spells it: "kernel.numa_balancing", "nohz_full=", "AMD SMT Option".
    pub name: &'static str,
    /// Effect of the setting, and why a quiet host needs it, in one to three sentences.
    pub reason: &'static str,
    /// Cost of the wanted value; empty if none.
    pub cost: &'static str,
    /// What harm the wanted value can do.
    pub risk: Risk,
    /// Impact of a wrong value.
    pub impact: Impact,
    /// The load without which it changes nothing, as a clause: "memory is short". Empty if it acts always.
    pub acts_when: &'static str,
    /// A change needs a reboot.
    pub needs_reboot: bool,
    /// The kernels and options it needs.
    pub needs: Needs,
    /// Check that shows that the setting is in force, not merely written.
    pub effective: &'static str,
    /// Files (globs with `*` inside components) that the judge reads from the snapshot's knobs. The first exists only
    /// in kernels that have the setting, if `needs` names versions.
    pub reads: &'static [&'static str],
    /// The wanted value in both profiles, unless one has its own.
    pub both: Want,
    /// The wanted value for the default profile `trading`.
    pub trading: Want,
    /// The wanted value in the profile `guide-57037`.
    pub guide: Want,
    /// Problem with the guide's advice on a modern host; shown with the row in profile `guide-57037`.
    pub hazard: &'static str,
    /// Sources of the advice: kernel document, guide section, paper.
    pub sources: &'static [&'static str],
    /// Compares the host's state with the wanted value. Pure.
    pub judge: fn(&Context<'_>, &Setting) -> Judgement,
    /// Proposes a change for a row with a fault. By default the layer decides. Pure.
    pub change: fn(&Context<'_>, &Setting) -> Proposal,
    /// What to do about a fault for which nothing is planned, or what changes it instead; empty for rows that `change`
    /// decides.
    pub not_planned: &'static str,
    /// The reason for `not_planned`.
    pub why_not: WhyLeftOut,
}

impl Setting {
    /// A template for struct update: `Setting { id: …, ..Setting::BLANK }`. A test rejects rows whose id,
    /// reason or sources are blank.
    pub const BLANK: Self = Self {
        id: "",
        layer: Layer::Sysctl,
        name: "",
        reason: "",
        cost: "",
        risk: Risk::None,
        impact: Impact::Medium,
        acts_when: "",
        needs_reboot: false,
        needs: Needs::ANY,
        effective: "",
        reads: &[],
        both: Want::Nothing,
        trading: Want::Nothing,
        guide: Want::Nothing,
        hazard: "",
        sources: &[],
        judge: |_, _| Judgement::unknown("no judge"),
        change: by_layer,
        not_planned: "",
        why_not: WhyLeftOut::YourChoice,
    };

    /// The load without which the setting changes nothing, as a clause; none if it acts always.
    pub fn needed_load(&self) -> Option<&'static str> {
        match (self.acts_when, self.layer) {
            ("", Layer::Nic) => Some("packets pass the interface"),
            ("", _) => None,
            (load, _) => Some(load),
        }
    }

    /// The value that the profile wants.
    pub fn want(&self, profile: Profile) -> Want {
        let own = match profile {
            Profile::Trading => self.trading,
            Profile::Guide57037 => self.guide,
        };
        if let Want::Nothing = own { self.both } else { own }
    }
}

/// A wanted value: fixed, or derived from the host's topology and role.
#[derive(Clone, Copy)]
pub enum Want {
    /// The profile has no preference: the row is not applicable.
    Nothing,
    /// A fixed value, compared by meaning: `1,2,3` = `1-3`, `2MB` = `2M`.
    Value(&'static str),
    /// Any of these values. The first is the one to write.
    OneOf(&'static [&'static str]),
    /// A value derived from topology, role and allocation. `None` if the host gives no basis for one.
    Derived(fn(&Context<'_>) -> Option<String>),
    /// A state that no single value describes, as text: "no swap in use".
    State(&'static str),
}

impl Want {
    /// The value to write, or the text of the wanted state; `None` if the profile has no preference.
    pub fn text(&self, context: &Context<'_>) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Value(text) | Self::State(text) => Some((*text).to_owned()),
            Self::OneOf(texts) => Some(texts.join(" or ")),
            Self::Derived(derive) => derive(context),
        }
    }
}

impl fmt::Debug for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("Nothing"),
            Self::Value(text) => write!(f, "Value({text:?})"),
            Self::OneOf(texts) => write!(f, "OneOf({texts:?})"),
            Self::Derived(_) => f.write_str("Derived"),
            Self::State(text) => write!(f, "State({text:?})"),
        }
    }
}

/// Place where a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// BIOS or UEFI setup.
    Firmware,
    /// The configuration that the kernel was built with.
    Kernel,
    /// Kernel command line.
    Boot,
    /// Kernel parameters in /proc/sys.
    Sysctl,
    /// Files of the kernel in /sys/kernel/debug.
    Debugfs,
    /// Files of the kernel in /sys.
    Sysfs,
    /// Services and their managers.
    Service,
    /// Device interrupts.
    Irq,
    /// Kernel threads and workqueues.
    Kthread,
    /// Network interfaces.
    Nic,
    /// Memory, huge pages, swap.
    Memory,
    /// Current state of the host, to check before measuring.
    Readiness,
}

impl Layer {
    /// Every layer, in the order in which a host is configured.
    pub const ALL: [Self; 12] = [
        Self::Firmware,
        Self::Kernel,
        Self::Boot,
        Self::Sysctl,
        Self::Debugfs,
        Self::Sysfs,
        Self::Memory,
        Self::Irq,
        Self::Kthread,
        Self::Nic,
        Self::Service,
        Self::Readiness,
    ];

    /// Name in tables and ids.
    pub fn word(self) -> &'static str {
        match self {
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Boot => "boot",
            Self::Sysctl => "sysctl",
            Self::Debugfs => "debugfs",
            Self::Sysfs => "sysfs",
            Self::Service => "service",
            Self::Irq => "irq",
            Self::Kthread => "kthread",
            Self::Nic => "nic",
            Self::Memory => "memory",
            Self::Readiness => "readiness",
        }
    }
}

/// Class of harm that a setting can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// No known harm.
    None,
    /// More power and heat, less boost for other cores.
    Power,
    /// Reliability, availability and serviceability of the hardware: errors go unnoticed.
    #[serde(rename = "RAS")]
    Ras,
    /// Protection of the host is weaker.
    Security,
    /// Breaks rules that a firm must follow (clock synchronization, audit trail).
    Compliance,
    /// The host or a service can stop working.
    Availability,
}

impl Risk {
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Power => "power",
            Self::Ras => "RAS",
            Self::Security => "security",
            Self::Compliance => "compliance",
            Self::Availability => "availability",
        }
    }
}

/// Impact of a wrong value: the weight of a row in the score, and its position in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// Hygiene.
    Low,
    /// Occasional interruptions, or variance.
    Medium,
    /// Constant interruptions on isolated CPUs, or microseconds on each message.
    High,
}

/// Kernels and configuration options that a setting needs.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Needs {
    /// First kernel that has the setting. One that shows the setting has it, whatever its version.
    pub since: Option<KernelVersion>,
    /// First kernel that no longer has it.
    pub until: Option<KernelVersion>,
    /// Required options of the kernel configuration, without `CONFIG_`.
    pub config: &'static [&'static str],
    /// New location of the setting in the kernel of `until`; empty if there is none.
    pub moved_to: &'static str,
    /// Only x86 hosts have it.
    pub x86: bool,
    /// The makers whose processors have it.
    pub makers: Makers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Makers {
    #[default]
    All,
    /// AMD, and Hygon.
    Amd,
    Intel,
    /// Any but AMD and Hygon.
    NotAmd,
}

impl Needs {
    pub const ANY: Self =
        Self { since: None, until: None, config: &[], moved_to: "", x86: false, makers: Makers::All };

    /// Any kernel of an x86 host.
    pub const X86: Self = Self { x86: true, ..Self::ANY };

    /// Any kernel of a host with AMD processors.
    pub const AMD: Self = Self { makers: Makers::Amd, ..Self::X86 };

    /// Any kernel of a host with Intel processors.
    pub const INTEL: Self = Self { makers: Makers::Intel, ..Self::X86 };

    /// Kernels from this version on.
    pub const fn since(major: u16, minor: u16) -> Self {
        Self { since: Some(KernelVersion::new(major, minor)), ..Self::ANY }
    }

    pub const fn until(major: u16, minor: u16) -> Self {
        Self { until: Some(KernelVersion::new(major, minor)), ..Self::ANY }
    }

    /// Kernels from one version on and before another.
    pub const fn between(since: (u16, u16), until: (u16, u16)) -> Self {
        Self { since: Some(KernelVersion::new(since.0, since.1)), ..Self::until(until.0, until.1) }
    }

    /// Adds the setting's new location.
    #[must_use]
    pub const fn moved_to(self, place: &'static str) -> Self {
        Self { moved_to: place, ..self }
    }

    #[must_use]
    pub const fn with_config(self, config: &'static [&'static str]) -> Self {
        Self { config, ..self }
    }
}
