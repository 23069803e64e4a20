//! What a setting of the catalogue is.

use crate::{
    Context, Judgement,
    change::{Proposal, by_layer},
};
use lowlat_host::{Profile, kernel_version::KernelVersion};
use serde::{Deserialize, Serialize};
use std::fmt;

/// One tunable of a host, with everything a user needs to decide on it.
///
/// The text fields are shown to people: plain sentences, units named, no figure that was not measured or cited.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Stable id, `layer.name` in lower case: "sysctl.kernel.numa_balancing".
    pub id: &'static str,
    /// Where it is set.
    pub layer: Layer,
    /// The name as the kernel or vendor spells it: "kernel.numa_balancing", "nohz_full=", "AMD SMT Option".
    pub name: &'static str,
    /// What it does and why a quiet host wants it: one to three sentences.
    pub reason: &'static str,
    /// What it costs; empty when nothing.
    pub cost: &'static str,
    /// What class of harm it can do.
    pub risk: Risk,
    /// How much it matters when it is wrong.
    pub impact: Impact,
    /// Whether a change takes a reboot.
    pub needs_reboot: bool,
    /// The kernels and options it needs.
    pub needs: Needs,
    /// How to see that it is in force, not merely written.
    pub effective: &'static str,
    /// Files (globs with `*` inside components) that the judge looks up among the snapshot's knobs.
    pub reads: &'static [&'static str],
    /// The wanted value for the default profile `trading`.
    pub trading: Want,
    /// The wanted value in the profile `guide-57037`.
    pub guide: Want,
    /// What is wrong with the guide's advice on a modern host; shown on the row in profile `guide-57037`.
    pub hazard: &'static str,
    /// Where the advice comes from: kernel document, guide section, paper.
    pub sources: &'static [&'static str],
    /// Judges the host's state against the wanted value. Pure.
    pub judge: fn(&Context<'_>, &Setting) -> Judgement,
    /// Proposes how the host is changed when the row is at fault; rows that leave it to their layer say nothing. Pure.
    pub change: fn(&Context<'_>, &Setting) -> Proposal,
}

impl Setting {
    /// A setting to fill by struct update: `Setting { id: …, ..Setting::BLANK }`. A test refuses rows whose id, reason
    /// or sources are left blank.
    pub const BLANK: Self = Self {
        id: "",
        layer: Layer::Sysctl,
        name: "",
        reason: "",
        cost: "",
        risk: Risk::None,
        impact: Impact::Medium,
        needs_reboot: false,
        needs: Needs::ANY,
        effective: "",
        reads: &[],
        trading: Want::Nothing,
        guide: Want::Nothing,
        hazard: "",
        sources: &[],
        judge: |_, _| Judgement::unknown("no judge"),
        change: by_layer,
    };

    /// What the profile wants.
    pub fn want(&self, profile: Profile) -> Want {
        match profile {
            Profile::Trading => self.trading,
            Profile::Guide57037 => self.guide,
        }
    }
}

/// A wanted value, fixed or a function of the host's topology and role.
#[derive(Clone, Copy)]
pub enum Want {
    /// The profile has no opinion: the row is not applicable.
    Nothing,
    /// A fixed value, compared by meaning: `1,2,3` = `1-3`, `2MB` = `2M`.
    Value(&'static str),
    /// Any of these values; the first is the one to write.
    OneOf(&'static [&'static str]),
    /// A value made from topology, role and allocation. None when the host gives no ground for one.
    Derived(fn(&Context<'_>) -> Option<String>),
    /// A state that no single value describes, in words: "no swap in use".
    State(&'static str),
}

impl Want {
    /// The value to write, or the wanted state in words; none when the profile has no opinion.
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

/// Where a setting is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// BIOS or UEFI set-up.
    Firmware,
    /// Kernel command line.
    Boot,
    /// /proc/sys.
    Sysctl,
    /// /sys/kernel/debug.
    Debugfs,
    /// /sys.
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
    /// State of the host at this moment, to look at before measuring.
    Readiness,
}

impl Layer {
    /// Every layer in the order in which people set a host up.
    pub const ALL: [Self; 11] = [
        Self::Firmware,
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

    /// The word for tables and ids.
    pub fn word(self) -> &'static str {
        match self {
            Self::Firmware => "firmware",
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

/// What class of harm a setting can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None known.
    None,
    /// More power and heat, less boost for other cores.
    Power,
    /// Reliability, availability, serviceability of the hardware: errors go unseen.
    #[serde(alias = "RAS")]
    Ras,
    /// Weakens protection.
    Security,
    /// Breaks evidence or rules that the desk must keep (clock synchronisation, audit trail).
    Compliance,
    /// The host or a service can stop working.
    Availability,
}

impl Risk {
    /// The word for tables.
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

/// How much a wrong value matters; the weight of a row in the score and its place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Impact {
    /// Hygiene.
    Low,
    /// Interruptions now and then, or variance.
    Medium,
    /// Interruptions all the time on isolated CPUs, or microseconds on each message.
    High,
}

/// Kernels and configuration options that a setting needs.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Needs {
    /// First kernel that has it.
    pub since: Option<KernelVersion>,
    /// First kernel that no longer has it.
    pub until: Option<KernelVersion>,
    /// Options of the kernel configuration without `CONFIG_`, all needed.
    pub config: &'static [&'static str],
    /// Where the setting went in the kernel of `until`; empty when it went nowhere.
    pub moved_to: &'static str,
    /// Whether only x86 hosts have it.
    pub x86: bool,
}

impl Needs {
    /// Any kernel.
    pub const ANY: Self = Self { since: None, until: None, config: &[], moved_to: "", x86: false };

    /// Any kernel of an x86 host.
    pub const X86: Self = Self { x86: true, ..Self::ANY };

    /// Kernels from this version on.
    pub const fn since(major: u16, minor: u16) -> Self {
        Self { since: Some(KernelVersion::new(major, minor)), ..Self::ANY }
    }

    /// Kernels before this version.
    pub const fn until(major: u16, minor: u16) -> Self {
        Self { until: Some(KernelVersion::new(major, minor)), ..Self::ANY }
    }

    /// Kernels from one version on and before another.
    pub const fn between(since: (u16, u16), until: (u16, u16)) -> Self {
        Self { since: Some(KernelVersion::new(since.0, since.1)), ..Self::until(until.0, until.1) }
    }

    /// The same with the place where the setting went.
    #[must_use]
    pub const fn moved_to(self, place: &'static str) -> Self {
        Self { moved_to: place, ..self }
    }

    /// The same with configuration options.
    #[must_use]
    pub const fn with_config(self, config: &'static [&'static str]) -> Self {
        Self { config, ..self }
    }
}
