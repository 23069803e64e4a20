//! The proof by ticks: how often the timer interrupts an isolated CPU, and whether RCU's work runs on other
//! CPUs.

use super::headline::expects;
use super::judge::{Scene, unreadable};
use super::{Row, Standing};
use lowlat_host::{CpuId, CpuSet, Reading};
use serde::{Deserialize, Serialize};

/// Maximum rate of timer interrupts of a CPU without ticks, per second. A kernel that stops the tick still
/// has a few: before Linux 4.17 one per second remained, and timers of the counting add some. An active tick
/// occurs 100 to 1,000 times a second.
pub const TICKS_PER_S_MAX: u64 = 10;

const LAYER: &str = "ticks";
const NS_PER_S: u128 = 1_000_000_000;

/// Timer interrupts of each isolated CPU over a period.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TickProof {
    pub window_ns: u64,
    /// Ticks per second of a CPU whose tick is not stopped (CONFIG_HZ).
    pub hz: Reading<u32>,
    /// The row of /proc/interrupts that was counted: "LOC", "arch_timer".
    pub source: String,
    /// The isolated CPUs of the plan.
    pub cpus: Vec<TickCount>,
    /// Highest number of ticks of a housekeeping CPU in the same period, for comparison.
    pub housekeeping_ticks_max: Reading<u64>,
    /// Reasons to doubt the proof, one sentence each.
    pub doubts: Vec<String>,
}

/// Timer interrupts of one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickCount {
    pub cpu: CpuId,
    pub ticks: Reading<u64>,
    /// Times that RCU's soft interrupt ran.
    pub rcu_softirqs: Reading<u64>,
    /// The load on the CPU while counting.
    pub load: TickLoad,
}

/// The load on a CPU while its ticks were counted. An idle CPU has few ticks regardless of its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickLoad {
    /// A spinning thread of lowlat.
    Spinner,
    /// A task that was already busy there.
    BusyTask,
    Idle,
}

impl TickLoad {
    pub fn word(self) -> &'static str {
        match self {
            Self::Spinner => "under a spinning thread",
            Self::BusyTask => "under the task running there",
            Self::Idle => "idle, which proves little",
        }
    }
}

impl TickProof {
    /// Maximum number of events in the window.
    pub fn allowed(&self) -> u64 {
        let allowed = u128::from(self.window_ns) * u128::from(TICKS_PER_S_MAX);
        u64::try_from((allowed + NS_PER_S / 2) / NS_PER_S).unwrap_or(u64::MAX).max(1)
    }
}

/// The standing of parameters that are not in force yet, and its reason.
type Unset<'a> = Option<&'a (Standing, String)>;

/// A row for each CPU, if the plan has CPUs without ticks, and one for RCU's callbacks.
pub(super) fn rows(scene: &Scene<'_>, proof: &TickProof, unset: Unset<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    if expects(scene.plan, "boot.nohz_full") {
        rows.extend(proof.cpus.iter().map(|count| of_cpu(proof, count, unset)));
    }
    if expects(scene.plan, "boot.rcu_nocbs") {
        rows.push(rcu(scene, proof, unset));
    }
    rows
}

fn of_cpu(proof: &TickProof, count: &TickCount, unset: Unset<'_>) -> Row {
    let planned = format!("{} ticks at most", proof.allowed());
    let observed = count.ticks.clone().map(|ticks| format!("{ticks} ticks, {}", count.load.word()));
    let what = format!("ticks of CPU {}", count.cpu);
    let row = Row::of_host(LAYER, what, planned, observed, Some("boot.nohz_full"));
    let Reading::Known(ticks) = &count.ticks else {
        let note = unreadable(&count.ticks);
        return Row { standing: Standing::Unreadable, note, ..row };
    };
    if let Some((standing, note)) = unset {
        return Row { standing: *standing, note: note.clone(), ..row };
    }
    if *ticks <= proof.allowed() {
        return row;
    }
    let of_hz = match &proof.hz {
        Reading::Known(hz) => format!(" (CONFIG_HZ is {hz})"),
        _ => String::new(),
    };
    let note = format!(
        "the tick is not stopped{of_hz}, because of several tasks, a timer, a perf event or the scheduler's fair \
         server; `lowlat jitter` with --cpus names the cause"
    );
    Row { standing: Standing::Ineffective, note, ..row }
}

/// Separate threads run callbacks. They must exist for each isolated CPU and run on other CPUs, and the soft
/// interrupt that would run them must be rare.
fn rcu(scene: &Scene<'_>, proof: &TickProof, unset: Unset<'_>) -> Row {
    let isolated = &scene.plan.isolated;
    let threads = scene.host.tasks.kernel_threads.iter().filter(|thread| thread.comm.starts_with("rcuo"));
    let (mut served, mut on_isolated, mut count) = (CpuSet::new(), Vec::new(), 0_u32);
    for thread in threads {
        count = count.saturating_add(1);
        // rcuop/3 and rcuos/3 serve CPU 3, rcuog/3 a group of CPUs (kernel/rcu/tree_nocb.h).
        let cpu = thread.comm.split_once('/').and_then(|(_, cpu)| cpu.parse::<CpuId>().ok());
        if let Some(cpu) = cpu.filter(|_| !thread.comm.starts_with("rcuog")) {
            served.insert(cpu.min(lowlat_host::CPU_ID_MAX));
        }
        if thread.cpus_allowed.known().is_some_and(|cpus| !cpus.is_disjoint(isolated)) {
            on_isolated.push(thread.comm.clone());
        }
    }
    let online = &scene.host.topology.online;
    let without = isolated.intersection(online).difference(&served);
    let busy: CpuSet = proof
        .cpus
        .iter()
        .filter(|cpu| cpu.rcu_softirqs.known().is_some_and(|count| *count > proof.allowed()))
        .map(|cpu| cpu.cpu)
        .collect();
    let planned = format!("run by threads outside {isolated}");
    let observed = Reading::Known(format!("{count} threads"));
    let what = "RCU callbacks of isolated CPUs";
    let row = Row::of_host(LAYER, what, planned, observed, Some("boot.rcu_nocbs"));
    let fault = if !without.is_empty() {
        format!("no thread rcuop or rcuos serves {without:#}: the kernel did not offload them")
    } else if let Some(first) = on_isolated.first() {
        format!("{} of these threads, {first} among them, may run on isolated CPUs", on_isolated.len())
    } else if !busy.is_empty() {
        format!("RCU's soft interrupt ran more than {} times on {busy:#} while counting", proof.allowed())
    } else {
        return row;
    };
    let standing = unset.map_or(Standing::Ineffective, |(standing, _)| *standing);
    Row { standing, note: fault, ..row }
}
