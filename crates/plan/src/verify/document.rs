//! What a verification says, as a document.

use super::{TickProof, ticks};
use lowlat_host::{CpuSet, Profile, Reading};
use serde::{Deserialize, Serialize};

/// A plan held against what the host's kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// What the document is: [`Verification::DOCUMENT`].
    pub document: String,
    /// Version of the document's shape: [`Verification::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of lowlat that looked.
    pub lowlat_version: String,
    /// The plan that was held against the host ([`crate::Plan::id`]).
    pub plan_id: String,
    /// The profile of the plan.
    pub profile: Profile,
    /// The boot that was looked at.
    pub boot_id: Reading<String>,
    /// The boot in which the plan was applied; absent when that is not known.
    pub applied_boot_id: Reading<String>,
    /// When the plan was applied, milliseconds since 1970; none when that is not known.
    pub applied_unix_ms: Option<u64>,
    /// When the host was looked at, milliseconds since 1970.
    pub verified_unix_ms: u64,
    /// CPUs that the plan keeps for housekeeping.
    pub housekeeping: CpuSet,
    /// CPUs that the plan isolates.
    pub isolated: CpuSet,
    /// The few figures that tell most.
    pub headline: Headline,
    /// First those of the headline, then those of each change in the plan's order, then those of the ticks.
    pub rows: Vec<Row>,
    /// How many rows have which standing.
    pub counts: Counts,
    /// Ticks of the isolated CPUs, where they were counted.
    pub ticks: Option<TickProof>,
    /// What the reader should know, one sentence or two each.
    pub warnings: Vec<String>,
}

impl Verification {
    /// What the document calls itself.
    pub const DOCUMENT: &str = "lowlat-verification";
    /// The present version of the shape.
    pub const SCHEMA_VERSION: u32 = 1;

    /// What all rows together come to.
    pub fn outcome(&self) -> Outcome {
        let counts = &self.counts;
        match (counts.not_held(), counts.pending) {
            (0, 0) => Outcome::Held,
            (0, _) => Outcome::Pending,
            _ => Outcome::NotHeld,
        }
    }

    /// The most ticks a second that an isolated CPU may have.
    pub fn ticks_per_s_max() -> u64 {
        ticks::TICKS_PER_S_MAX
    }
}

/// What a verification comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every row is held, or moves at its next interrupt, or has nothing left to hold.
    Held,
    /// Rows wait for the reboot, and all others are held.
    Pending,
    /// A row is not held.
    NotHeld,
}

/// The figures that the desk asks for first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headline {
    /// CPUs that the scheduler keeps off: /sys/devices/system/cpu/isolated and isolated cpuset partitions.
    pub isolated: Reading<CpuSet>,
    /// /sys/devices/system/cpu/nohz_full.
    pub nohz_full: Reading<CpuSet>,
    /// Interrupts with a handler that can be moved.
    pub irqs_movable: u32,
    /// Those of them that go to housekeeping CPUs only.
    pub irqs_inside: u32,
    /// Those of them that are asked to, and move at their next interrupt.
    pub irqs_moving: u32,
    /// Interrupts with a handler that the kernel manages.
    pub irqs_managed: u32,
    /// Those of them that reach isolated CPUs.
    pub irqs_managed_on_isolated: u32,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The change's place in [`crate::Plan::changes`]; none for rows of the headline and of the ticks.
    pub change: Option<usize>,
    /// The settings that ask for it.
    pub settings: Vec<String>,
    /// The layer, as a word.
    pub layer: String,
    /// What was looked at: "vm.swappiness", "nohz_full=", "IRQ 47 eth0-3".
    pub what: String,
    /// The planned value.
    pub planned: String,
    /// The value that is in force.
    pub observed: Reading<String>,
    /// How it stands.
    pub standing: Standing,
    /// Who set the other value, when it is overridden.
    pub by: Option<Culprit>,
    /// Why, or what to do; empty when the row says all.
    pub note: String,
}

/// How a planned value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Another value is there, and somebody set it.
    Overridden,
    /// The value from before is back, or none is there.
    Lost,
    /// It is configured as planned, and the kernel does not follow.
    Ineffective,
    /// What is in force could not be read.
    Unreadable,
    /// It waits for the reboot.
    Pending,
    /// An interrupt is asked to move, and does when it fires the next time.
    MovesLater,
    /// What it was planned for is no longer there: an interrupt or a thread that went away.
    Gone,
    /// What is in force is as planned.
    Held,
}

impl Standing {
    /// Every standing, that which matters most first.
    pub const WORST_FIRST: [Self; 8] = [
        Self::Overridden,
        Self::Lost,
        Self::Ineffective,
        Self::Unreadable,
        Self::Pending,
        Self::MovesLater,
        Self::Gone,
        Self::Held,
    ];

    /// The standing in words.
    pub fn word(self) -> &'static str {
        match self {
            Self::Overridden => "overridden",
            Self::Lost => "lost",
            Self::Ineffective => "ineffective",
            Self::Unreadable => "unreadable",
            Self::Pending => "pending",
            Self::MovesLater => "moves later",
            Self::Gone => "gone",
            Self::Held => "held",
        }
    }

    /// Whether the row fails the verification.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Overridden | Self::Lost | Self::Ineffective | Self::Unreadable)
    }
}

/// How many rows have which standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// [`Standing::Overridden`].
    pub overridden: u32,
    /// [`Standing::Lost`].
    pub lost: u32,
    /// [`Standing::Ineffective`].
    pub ineffective: u32,
    /// [`Standing::Unreadable`].
    pub unreadable: u32,
    /// [`Standing::Pending`].
    pub pending: u32,
    /// [`Standing::MovesLater`].
    pub moves_later: u32,
    /// [`Standing::Gone`].
    pub gone: u32,
    /// [`Standing::Held`].
    pub held: u32,
}

impl Counts {
    /// Counts rows.
    pub fn of(rows: &[Row]) -> Self {
        let mut counts = Self::default();
        for row in rows {
            let count = match row.standing {
                Standing::Overridden => &mut counts.overridden,
                Standing::Lost => &mut counts.lost,
                Standing::Ineffective => &mut counts.ineffective,
                Standing::Unreadable => &mut counts.unreadable,
                Standing::Pending => &mut counts.pending,
                Standing::MovesLater => &mut counts.moves_later,
                Standing::Gone => &mut counts.gone,
                Standing::Held => &mut counts.held,
            };
            *count = count.saturating_add(1);
        }
        counts
    }

    /// The count of one standing.
    pub fn count(&self, standing: Standing) -> u32 {
        match standing {
            Standing::Overridden => self.overridden,
            Standing::Lost => self.lost,
            Standing::Ineffective => self.ineffective,
            Standing::Unreadable => self.unreadable,
            Standing::Pending => self.pending,
            Standing::MovesLater => self.moves_later,
            Standing::Gone => self.gone,
            Standing::Held => self.held,
        }
    }

    /// Rows that fail the verification.
    pub fn not_held(&self) -> u32 {
        let faults = Standing::WORST_FIRST.into_iter().filter(|standing| standing.is_fault());
        faults.map(|standing| self.count(standing)).fold(0, u32::saturating_add)
    }

    /// All rows.
    pub fn rows(&self) -> u32 {
        Standing::WORST_FIRST.into_iter().map(|standing| self.count(standing)).fold(0, u32::saturating_add)
    }
}

/// Who set a value that is not the planned one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    /// What kind of thing it is.
    pub kind: CulpritKind,
    /// The file, the service, or "unknown".
    pub name: String,
    /// The line of the file, from 1.
    pub line: Option<u32>,
    /// What it does: "sets vm.swappiness = 60".
    pub does: String,
}

/// The kinds of things that override a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// A file of sysctl.d, or sysctl.conf.
    SysctlFile,
    /// A link to /dev/null, or a file of higher precedence, in the place of lowlat's own file.
    Mask,
    /// A profile of TuneD.
    Tuned,
    /// A daemon that runs.
    Daemon,
    /// A drop-in of a unit, or the file of its environment.
    DropIn,
    /// A file that boot parameters come from.
    BootSource,
    /// A file that sets values of /sys at boot: tmpfiles.d, sysfs.conf.
    SysfsFile,
    /// Another parameter or value of the kernel.
    Kernel,
    /// Nobody that lowlat knows.
    Unknown,
}
