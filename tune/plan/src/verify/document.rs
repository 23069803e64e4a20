//! The document of a verification.

use super::{TickProof, ticks};
use lowlat_host::{CpuSet, Profile, Reading};
use serde::{Deserialize, Serialize};

/// A plan compared with the state of the host's kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Name of the document: [`Verification::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`Verification::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of lowlat that verified.
    pub lowlat_version: String,
    pub plan_id: String,
    /// The profile of the plan.
    pub profile: Profile,
    pub boot_id: Reading<String>,
    /// The boot in which the plan was applied; absent if unknown.
    pub applied_boot_id: Reading<String>,
    /// When the plan was applied, milliseconds since 1970; none if unknown.
    pub applied_unix_ms: Option<u64>,
    /// When the host was read, milliseconds since 1970.
    pub verified_unix_ms: u64,
    /// CPUs that the plan keeps for housekeeping.
    pub housekeeping: CpuSet,
    /// CPUs that the plan isolates.
    pub isolated: CpuSet,
    /// The plan was made for another host; then it is not held, whatever the rows show.
    pub is_of_other_host: bool,
    pub headline: Headline,
    /// Rows: first of the headline, then of each change in the plan's order, then of the ticks.
    pub rows: Vec<Row>,
    /// Number of rows by standing.
    pub counts: Counts,
    /// Ticks of the isolated CPUs, if counted.
    pub ticks: Option<TickProof>,
    /// Notes for the reader, one or two sentences each.
    pub warnings: Vec<String>,
}

impl Verification {
    pub const DOCUMENT: &str = "lowlat-verification";
    pub const SCHEMA_VERSION: u32 = 1;

    /// The combined result of all rows.
    pub fn outcome(&self) -> Outcome {
        let counts = &self.counts;
        match (counts.not_held(), counts.pending) {
            _ if self.is_of_other_host => Outcome::NotHeld,
            (0, 0) => Outcome::Held,
            (0, _) => Outcome::Pending,
            _ => Outcome::NotHeld,
        }
    }

    /// Highest rate of ticks of an isolated CPU, per second.
    pub fn ticks_per_s_max() -> u64 {
        ticks::TICKS_PER_S_MAX
    }
}

/// The result of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Every row is held, moves at its next interrupt, or no longer exists.
    Held,
    /// Some rows wait for the reboot, and all others are held.
    Pending,
    /// A row is not held.
    NotHeld,
}

/// Summary of CPUs and interrupts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Headline {
    /// CPUs that the scheduler avoids: /sys/devices/system/cpu/isolated and isolated cpuset partitions.
    pub isolated: Reading<CpuSet>,
    /// CPUs without a tick: /sys/devices/system/cpu/nohz_full.
    pub nohz_full: Reading<CpuSet>,
    /// Number of movable interrupts with a handler.
    pub irqs_movable: u32,
    /// Number of those that fire on housekeeping CPUs only.
    pub irqs_inside: u32,
    /// Number of those that will move there at their next interrupt.
    pub irqs_moving: u32,
    /// Number of interrupts with a handler that the kernel manages.
    pub irqs_managed: u32,
    /// Number of those that reach isolated CPUs.
    pub irqs_managed_on_isolated: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The change's index in [`crate::Plan::changes`]; none for rows of the headline and the ticks.
    pub change: Option<usize>,
    /// The settings that request it.
    pub settings: Vec<String>,
    pub layer: String,
    /// The target: "vm.swappiness", "nohz_full=", "IRQ 47 eth0-3".
    pub what: String,
    pub planned: String,
    pub observed: Reading<String>,
    pub standing: Standing,
    /// The program or file that set the other value, if it is overridden.
    pub by: Option<Culprit>,
    /// The reason, or what to do; empty if the row is clear.
    pub note: String,
}

impl Row {
    /// A row that belongs to no change, held.
    pub(super) fn of_host(
        layer: &str,
        what: impl Into<String>,
        planned: String,
        observed: Reading<String>,
        setting: Option<&str>,
    ) -> Self {
        Self {
            change: None,
            settings: setting.map(str::to_owned).into_iter().collect(),
            layer: layer.to_owned(),
            what: what.into(),
            planned,
            observed,
            standing: Standing::Held,
            by: None,
            note: String::new(),
        }
    }
}

/// The standing of a planned value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Another program or file set another value.
    Overridden,
    /// The old value is back, or there is none.
    Lost,
    /// The planned value is missing, because lowlat, the kernel or a service refused to set it.
    Refused,
    /// It is configured as planned, but the kernel does not follow it.
    Ineffective,
    /// The present value could not be read.
    Unreadable,
    /// It waits for the reboot.
    Pending,
    /// An interrupt will move when it next fires.
    MovesLater,
    /// The interrupt or thread no longer exists.
    Gone,
    /// The present value is the planned one.
    Held,
}

impl Standing {
    /// All standings, the most important first.
    pub const WORST_FIRST: [Self; 9] = [
        Self::Overridden,
        Self::Lost,
        Self::Refused,
        Self::Ineffective,
        Self::Unreadable,
        Self::Pending,
        Self::MovesLater,
        Self::Gone,
        Self::Held,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Overridden => "overridden",
            Self::Lost => "lost",
            Self::Refused => "refused",
            Self::Ineffective => "ineffective",
            Self::Unreadable => "unreadable",
            Self::Pending => "pending",
            Self::MovesLater => "moves later",
            Self::Gone => "gone",
            Self::Held => "held",
        }
    }

    /// True if such a row fails the verification.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Overridden | Self::Lost | Self::Refused | Self::Ineffective | Self::Unreadable)
    }
}

/// Number of rows by standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub overridden: u32,
    pub lost: u32,
    pub refused: u32,
    pub ineffective: u32,
    pub unreadable: u32,
    pub pending: u32,
    pub moves_later: u32,
    pub gone: u32,
    pub held: u32,
}

impl Counts {
    pub fn of(rows: &[Row]) -> Self {
        let mut counts = Self::default();
        for row in rows {
            let count = counts.of_standing(row.standing);
            *count = count.saturating_add(1);
        }
        counts
    }

    fn of_standing(&mut self, standing: Standing) -> &mut u32 {
        match standing {
            Standing::Overridden => &mut self.overridden,
            Standing::Lost => &mut self.lost,
            Standing::Refused => &mut self.refused,
            Standing::Ineffective => &mut self.ineffective,
            Standing::Unreadable => &mut self.unreadable,
            Standing::Pending => &mut self.pending,
            Standing::MovesLater => &mut self.moves_later,
            Standing::Gone => &mut self.gone,
            Standing::Held => &mut self.held,
        }
    }

    /// The count of one standing.
    pub fn count(mut self, standing: Standing) -> u32 {
        *self.of_standing(standing)
    }

    /// Rows that fail the verification.
    pub fn not_held(&self) -> u32 {
        let faults = Standing::WORST_FIRST.into_iter().filter(|standing| standing.is_fault());
        faults.map(|standing| self.count(standing)).fold(0, u32::saturating_add)
    }

    pub fn rows(&self) -> u32 {
        Standing::WORST_FIRST.into_iter().map(|standing| self.count(standing)).fold(0, u32::saturating_add)
    }
}

/// A program or file that set a value other than the planned one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Culprit {
    pub kind: CulpritKind,
    /// The file, the service, or "unknown".
    pub name: String,
    /// The line of the file, from 1.
    pub line: Option<u32>,
    /// Its effect: "sets vm.swappiness = 60".
    pub does: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// A file of sysctl.d, or sysctl.conf.
    SysctlFile,
    /// A link to /dev/null, or a file of higher precedence, instead of lowlat's file.
    Mask,
    Tuned,
    Daemon,
    /// A drop-in of a unit, or the file of its environment.
    DropIn,
    /// A source file of boot parameters.
    BootSource,
    /// A file that sets values of /sys at boot: tmpfiles.d, sysfs.conf.
    SysfsFile,
    /// Another parameter or value of the kernel.
    Kernel,
    Unknown,
}
