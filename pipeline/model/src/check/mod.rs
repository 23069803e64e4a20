//! Judgements about a host's room for a run, from facts that were read before.

mod cores;
mod judge;
mod memory;

pub use cores::spinning;
pub use judge::{HUGE_PAGES, OTHER_RUNS, came_beside, judge, others};
pub use memory::{Memory, files_needed};

use crate::PipelineParameters;
use lowlat_host::{CpuSet, Reading};
use thiserror::Error;

/// Facts about a host's room for a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoomFacts {
    /// CPUs that this process may use (sched_getaffinity(2)).
    pub cpus: Reading<CpuSet>,
    /// MemAvailable of /proc/meminfo.
    pub memory_available_bytes: Reading<u64>,
    /// SwapTotal less SwapFree of /proc/meminfo.
    pub swap_used_bytes: Reading<u64>,
    /// The limit of locked memory (RLIMIT_MEMLOCK); the inner one is none where there is no limit.
    pub locked_bytes_max: Reading<Option<u64>>,
    /// The limit of open files that this process may raise itself to (the hard RLIMIT_NOFILE); none without a limit.
    pub open_files_max: Reading<Option<u64>>,
    /// Bytes in free pages of 2 MiB of the pool.
    pub huge_bytes_free: Reading<u64>,
    /// The process that is already master under the run's name; `Absent` if there is none.
    pub running_master: Reading<String>,
    /// Limits of the control groups of this process.
    pub groups: GroupLimits,
    /// Other runs of the pipeline on this machine, as "process 4711 (run monday)".
    pub other_runs: Reading<Vec<String>>,
}

/// Room that the control groups leave to a process; an inner `None` means no limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupLimits {
    pub memory_left_bytes: Reading<Option<u64>>,
    /// Allowed CPU time, in CPUs.
    pub cpus: Reading<Option<f64>>,
}

/// Judgement of a point, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// There is room.
    Fine,
    /// It could not be determined.
    Unknown,
    /// The run works, but its figures are less meaningful.
    Doubtful,
    /// The run would work, but its figures would not be meaningful: it starts only if forced.
    Pointless,
    /// The run would fail: it does not start.
    Impossible,
}

/// One point of the check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// `memory`, `control group`, `CPU quota`, `swap`, `spinners`, `pins`, `pinned CPUs`, `locked memory`,
    /// `open files`, `huge pages`, `master`, [`OTHER_RUNS`].
    pub id: &'static str,
    pub room: Room,
    /// Finding and its meaning, one sentence.
    pub found: String,
    /// Remedy; empty if there is nothing to do.
    pub action: String,
}

impl Point {
    fn new(id: &'static str, room: Room, found: impl Into<String>, action: impl Into<String>) -> Self {
        Self { id, room, found: found.into(), action: action.into() }
    }

    fn fine(id: &'static str, found: impl Into<String>) -> Self {
        Self::new(id, Room::Fine, found, "")
    }

    /// "memory: 2 GiB are needed, 1 GiB is available. Run fewer strategies."
    pub fn sentence(&self) -> String {
        let Self { id, found, action, .. } = self;
        if action.is_empty() { format!("{id}: {found}.") } else { format!("{id}: {found}. {action}") }
    }
}

/// The points that keep a run from starting.
pub fn hindrances(points: &[Point], is_forced: bool) -> Vec<&Point> {
    let least = if is_forced { Room::Impossible } else { Room::Pointless };
    points.iter().filter(|point| point.room >= least).collect()
}

/// Returns a run's warnings about the host: points that are doubtful, unknown or forced.
pub fn doubts(points: &[Point]) -> Vec<String> {
    points.iter().filter(|point| point.room > Room::Fine).map(Point::sentence).collect()
}

/// A host has no room for a run. Holds a sentence for each reason.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the host has no room for this run{}", .0.iter().map(|reason| format!("\n  {reason}")).collect::<String>())]
pub struct NoRoom(pub Vec<String>);

/// The warnings about a run that the host has room for.
///
/// # Errors
/// The host has no room for it.
pub fn admit(
    parameters: &PipelineParameters,
    facts: &RoomFacts,
    is_forced: bool,
) -> Result<Vec<String>, NoRoom> {
    let points = judge(parameters, facts);
    let against = hindrances(&points, is_forced);
    if against.is_empty() {
        Ok(doubts(&points))
    } else {
        Err(NoRoom(against.iter().map(|point| point.sentence()).collect()))
    }
}
