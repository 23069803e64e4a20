//! Interruptions that hit several CPUs at once: broadcast IPIs, SMIs, a hypervisor that stops the whole machine.

use super::{keys::CauseKey, names::CauseNames, windows::Windows};
use crate::{CauseKind, Group, GroupMember, GroupSize, Interruption, JitterGroups};
use lowlat_host::{CpuId, CpuSet, TickScale, ticks_between};
use std::{cmp::Reverse, collections::BTreeMap};

/// Maximum number of kept groups: those that took the most time over all their CPUs.
pub const GROUPS_WORST_MAX: usize = 32;

/// Interruptions that may wait for those of other CPUs, over all CPUs. If there are more, the older half is
/// processed without waiting.
const WAITING_MAX: usize = 65_536;

/// Parameters of a group finder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupPlan {
    pub cpus: CpuSet,
    /// Frequency of the counter in hertz.
    pub hz: u64,
    /// Reading of the counter at the start of the run.
    pub epoch_ticks: u64,
    /// Maximum distance between the start of a group's first interruption and its others, in ticks.
    pub window_ticks: u64,
}

/// One interruption of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub cpu: CpuId,
    /// The sampler's last reading before it.
    pub before: u64,
    /// The sampler's first reading after it.
    pub now: u64,
    /// Its main cause.
    pub key: CauseKey,
}

/// A hit in ticks since the epoch.
#[derive(Debug, Clone, Copy)]
struct TimedHit {
    at: u64,
    cpu: CpuId,
    length: u64,
    window: u64,
    key: CauseKey,
}

impl TimedHit {
    /// Its cause, if its window is affected by firmware or hypervisor or not.
    fn key_if(&self, is_touched: bool) -> CauseKey {
        let is_blamed = is_touched && self.key == CauseKey::Kind(CauseKind::Unexplained);
        if is_blamed { CauseKey::Kind(CauseKind::FirmwareOrHypervisor) } else { self.key }
    }
}

#[derive(Debug, Default)]
struct CpuState {
    count: u64,
    /// No interruption that started before this will arrive.
    complete_until: u64,
    windows: Windows,
    /// Number of the last group that contains it.
    group_number: u64,
}

#[derive(Debug)]
struct KeptGroup {
    ticks: u64,
    members: Vec<TimedHit>,
}

impl KeptGroup {
    /// Groups that took more time rank higher; among equal ones, the earlier.
    fn rank(&self) -> (u64, Reverse<u64>) {
        (self.ticks, Reverse(self.members.first().map_or(0, |member| member.at)))
    }
}

/// Finds groups. Interruptions arrive in time order per CPU, but in any order across CPUs; a CPU's watermark
/// shows its progress.
#[derive(Debug)]
pub struct GroupFinder {
    scale: TickScale,
    epoch_ticks: u64,
    window_ticks: u64,
    cpus: BTreeMap<CpuId, CpuState>,
    waiting: Vec<TimedHit>,
    /// Everything up to here has been processed.
    judged_until: u64,
    late_count: u64,
    group: Vec<TimedHit>,
    /// The open group's number; groups count from 1.
    group_number: u64,
    sizes: BTreeMap<usize, u64>,
    worst: Vec<KeptGroup>,
}

impl GroupFinder {
    /// Creates a finder with all its memory for waiting interruptions reserved.
    pub fn new(plan: &GroupPlan) -> Self {
        let cpus: BTreeMap<CpuId, CpuState> =
            plan.cpus.iter().map(|cpu| (cpu, CpuState::default())).collect();
        Self {
            scale: TickScale::new(plan.hz),
            epoch_ticks: plan.epoch_ticks,
            window_ticks: plan.window_ticks,
            waiting: Vec::with_capacity(WAITING_MAX),
            judged_until: 0,
            late_count: 0,
            group: Vec::with_capacity(cpus.len()),
            group_number: 0,
            sizes: BTreeMap::new(),
            worst: Vec::with_capacity(GROUPS_WORST_MAX),
            cpus,
        }
    }

    fn since_epoch(&self, ticks: u64) -> u64 {
        ticks_between(self.epoch_ticks, ticks).unwrap_or(0)
    }

    /// Takes one interruption. Interruptions of CPUs that are not in the plan are ignored.
    pub fn push(&mut self, hit: Hit) {
        let at = self.since_epoch(hit.before);
        let Some(cpu) = self.cpus.get_mut(&hit.cpu) else { return };
        cpu.count += 1;
        if at < self.judged_until {
            self.late_count += 1;
            return;
        }
        let length = ticks_between(hit.before, hit.now).unwrap_or(0);
        let window = cpu.windows.open();
        self.waiting.push(TimedHit { at, cpu: hit.cpu, length, window, key: hit.key });
        if self.waiting.len() >= WAITING_MAX {
            self.judge_older_half();
        }
    }

    /// States that no interruption of this CPU that started before this moment will arrive.
    pub fn pass(&mut self, cpu: CpuId, ticks: u64) {
        let at = self.since_epoch(ticks);
        if let Some(cpu) = self.cpus.get_mut(&cpu) {
            cpu.complete_until = cpu.complete_until.max(at);
        }
    }

    /// Processes all interruptions that no later arrival can precede. Call it once per round of the
    /// collector.
    pub fn judge(&mut self) {
        let until = self.cpus.values().map(|cpu| cpu.complete_until).min().unwrap_or(0);
        if until <= self.judged_until {
            return;
        }
        self.sort_waiting();
        let count = self.waiting.partition_point(|member| member.at < until);
        self.judge_first(count);
        self.judged_until = until;
    }

    fn sort_waiting(&mut self) {
        self.waiting.sort_unstable_by_key(|member| (member.at, member.cpu, member.length));
    }

    /// A CPU whose watermark does not advance must not block all others permanently.
    fn judge_older_half(&mut self) {
        self.sort_waiting();
        let count = self.waiting.len() / 2;
        let until = self.waiting.get(count).map_or(0, |member| member.at);
        self.judge_first(count);
        self.judged_until = self.judged_until.max(until);
    }

    fn judge_first(&mut self, count: usize) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for member in waiting.drain(..count) {
            self.join(member);
        }
        self.waiting = waiting;
    }

    /// Adds the next interruption in time order to the open group, or closes that and opens one with it. A
    /// CPU is in a group only once, with its first interruption.
    fn join(&mut self, member: TimedHit) {
        let is_near =
            self.group.first().is_some_and(|first| member.at.saturating_sub(first.at) <= self.window_ticks);
        if !is_near {
            self.close_group();
            self.group_number += 1;
        }
        let Some(cpu) = self.cpus.get_mut(&member.cpu) else { return };
        if cpu.group_number != self.group_number {
            cpu.group_number = self.group_number;
            self.group.push(member);
        }
    }

    fn close_group(&mut self) {
        if self.group.len() >= 2 {
            *self.sizes.entry(self.group.len()).or_default() += 1;
            self.keep_group();
        }
        self.group.clear();
    }

    /// Keeps the open group if it ranks among the worst; it swaps memory with the one it replaces.
    fn keep_group(&mut self) {
        let ticks = self.group.iter().fold(0_u64, |sum, member| sum.saturating_add(member.length));
        for member in &mut self.group {
            class(member, &self.cpus);
        }
        if self.worst.len() < GROUPS_WORST_MAX {
            let mut members = Vec::with_capacity(self.cpus.len());
            members.extend_from_slice(&self.group);
            self.worst.push(KeptGroup { ticks, members });
        } else if let Some(least) = self.worst.iter_mut().min_by_key(|kept| kept.rank())
            && ticks > least.ticks
        {
            least.ticks = ticks;
            std::mem::swap(&mut least.members, &mut self.group);
        }
    }

    /// Closes a window of about a second on all CPUs; `moved`: those whose steal time or SMI count increased
    /// in it. The counterpart of [`super::CpuAttributor::close_window`].
    pub fn close_window(&mut self, moved: &CpuSet) {
        for (cpu, state) in &mut self.cpus {
            state.windows.close(moved.contains(*cpu));
        }
        for member in self.worst.iter_mut().flat_map(|kept| &mut kept.members) {
            class(member, &self.cpus);
        }
    }

    /// Interruptions that arrived after their time had been processed: they are in no group.
    pub fn late_count(&self) -> u64 {
        self.late_count
    }

    /// Processes the remaining interruptions, and names all causes. `run_ticks`: length of the run.
    pub fn finish(mut self, run_ticks: u64, names: &CauseNames) -> JitterGroups {
        self.sort_waiting();
        self.judge_first(self.waiting.len());
        self.close_group();
        self.worst.sort_by_key(|kept| Reverse(kept.rank()));
        let sizes = self.sizes.iter().map(|(cpus, count)| GroupSize {
            cpu_count: u32::try_from(*cpus).unwrap_or(u32::MAX),
            count: *count,
        });
        JitterGroups {
            window_ns: self.scale.ns(self.window_ticks),
            sizes: sizes.collect(),
            chance_pair_count: self.chance_pair_count(run_ticks),
            worst: self.worst.iter().map(|kept| self.named(kept, names)).collect(),
        }
    }

    /// Expected pairs of interruptions on two CPUs that start within a window of each other by chance: for
    /// each pair of CPUs, each of the first's `n` meets one of the second's `m` within the window on either
    /// side with probability `m · 2w/T`.
    fn chance_pair_count(&self, run_ticks: u64) -> f64 {
        if run_ticks == 0 {
            return 0.0;
        }
        let mut before = 0.0;
        let mut pairs = 0.0;
        for cpu in self.cpus.values() {
            pairs += before * cpu.count as f64;
            before += cpu.count as f64;
        }
        pairs * 2.0 * self.window_ticks as f64 / run_ticks as f64
    }

    fn named(&self, kept: &KeptGroup, names: &CauseNames) -> Group {
        let member = |member: &TimedHit| GroupMember {
            cpu: member.cpu,
            interruption: Interruption {
                at_ns: self.scale.ns(member.at),
                length_ns: self.scale.ns(member.length),
            },
            // No further window will be closed.
            cause: names.cause(member.key_if(
                self.cpus.get(&member.cpu).is_some_and(|cpu| cpu.windows.touched_at_end(member.window)),
            )),
        };
        Group { members: kept.members.iter().map(member).collect() }
    }
}

/// Assigns an unexplained member to firmware or hypervisor once its window is known to be affected.
fn class(member: &mut TimedHit, cpus: &BTreeMap<CpuId, CpuState>) {
    let is_touched = cpus.get(&member.cpu).and_then(|cpu| cpu.windows.touched(member.window));
    member.key = member.key_if(is_touched == Some(true));
}

#[cfg(test)]
#[path = "tests/groups.rs"]
mod tests;
