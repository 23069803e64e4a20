//! /proc/PID/stat and /proc/PID/task/TID/stat: the kernel's facts about a task in one line (proc(5)).

use crate::Root;
use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet, Reading, snapshot::SchedPolicy};

/// The task is a kernel thread (include/linux/sched.h; part of the file's format, field 9).
pub(crate) const PF_KTHREAD: u64 = 0x0020_0000;

/// Fields by their number in proc(5), counted from 1.
const STATE: usize = 3;
const FLAGS: usize = 9;
const USER_TICKS: usize = 14;
const SYSTEM_TICKS: usize = 15;
const THREAD_COUNT: usize = 20;
const START_TICKS: usize = 22;
const CPU: usize = 39;
const RT_PRIORITY: usize = 40;
const POLICY: usize = 41;

/// Fields that describe a task, its scheduling and its use of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskStat {
    /// Its name, at most 15 bytes; its owner may choose any characters.
    pub comm: String,
    /// The kernel's letter for its state: 'R' running, 'S' sleeping, 'Z' dead and not yet waited for, …
    pub state: char,
    /// Flags of the task (PF_…).
    pub flags: u64,
    /// Scheduling policy; unknown if the line is truncated before it.
    pub policy: SchedPolicy,
    /// Real-time priority, 1 to 99, or 0.
    pub rt_priority: u32,
    /// CPU time and where it was used; `None` if the line is truncated.
    pub usage: Option<TaskUsage>,
}

/// CPU time used by a task, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskUsage {
    /// CPU time since its start in clock ticks, user and system together. In /proc/PID/stat the sum over all
    /// threads.
    pub cpu_ticks: u64,
    /// Number of threads of the process.
    pub thread_count: u64,
    /// Start time in clock ticks since boot; distinguishes two tasks with the same number.
    pub start_ticks: u64,
    /// The CPU on which it is running or last ran.
    pub cpu: CpuId,
}

/// Returns the processes that the threads of a process started, as far as they have not ended. Empty if it has ended.
pub fn children(root: &Root, pid: u32) -> Vec<u32> {
    let lists = root.glob(&format!("/proc/{pid}/task/*/children")).into_iter();
    let lists = lists.filter_map(|path| root.read(&path).into_known());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

impl TaskStat {
    /// Reads a stat file. A task that ended is absent.
    pub fn read(root: &Root, path: &str) -> Reading<Self> {
        root.read_bytes(path).and_then(|bytes| {
            // Its owner may choose any bytes as its name, so the file need not be UTF-8.
            let line = String::from_utf8_lossy(&bytes);
            Reading::understood(Self::parse(&line), path, &line, "a line such as \"1 (init) S 0 1 …\"")
        })
    }

    /// Parses `pid (comm) state …`. The name may contain spaces and parentheses, so it ends at the last `)`.
    pub fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.rsplit_once(')')?;
        let (_, comm) = before.split_once('(')?;
        // The first word after the name is field 3.
        let fields: Vec<&str> = after.split_whitespace().take(POLICY).collect();
        let field = |number: usize| fields.get(number.checked_sub(3)?).copied();
        let count = |number: usize| field(number)?.parse::<u64>().ok();
        let policy = field(POLICY).and_then(|text| text.parse().ok());
        let usage = || {
            Some(TaskUsage {
                cpu_ticks: count(USER_TICKS)?.saturating_add(count(SYSTEM_TICKS)?),
                thread_count: count(THREAD_COUNT)?,
                start_ticks: count(START_TICKS)?,
                cpu: field(CPU)?.parse().ok().filter(|cpu| *cpu <= CPU_ID_MAX)?,
            })
        };
        Some(Self {
            comm: comm.to_owned(),
            state: field(STATE)?.chars().next()?,
            flags: count(FLAGS)?,
            policy: policy.map_or(SchedPolicy::Unknown, SchedPolicy::from_number),
            rt_priority: field(RT_PRIORITY).and_then(|text| text.parse().ok()).unwrap_or(0),
            usage: usage(),
        })
    }

    /// True if the task is dead but its parent has not yet waited for it.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    pub fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }
}

/// Reads the CPUs that a task may use: `Cpus_allowed_list` of its status file, otherwise the mask `Cpus_allowed`.
pub fn cpus_allowed(root: &Root, path: &str) -> Reading<CpuSet> {
    root.read_bytes(path).and_then(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        match (field("Cpus_allowed_list:"), field("Cpus_allowed:")) {
            (Some(list), _) => {
                let cpus = CpuSet::parse_list(list).ok();
                Reading::understood(cpus, path, list, "Cpus_allowed_list with a CPU list such as 0-3,8")
            }
            (None, Some(mask)) => {
                let cpus = CpuSet::parse_mask(mask).ok();
                Reading::understood(cpus, path, mask, "Cpus_allowed with a CPU mask such as ff")
            }
            (None, None) => Reading::Absent,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "16017 (odd) S (x) R 16008 16008 12344 0 -1 4194304 100 0 0 0 7 5 0 0 20 0 3 0 1124659 \
                        3133440 411 18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 17 6 0 1 0 0 0";

    #[test]
    fn the_line_is_read_from_its_last_parenthesis() {
        let stat = TaskStat::parse(LINE).unwrap();
        assert_eq!(
            (stat.comm.as_str(), stat.state, stat.policy, stat.is_kernel_thread()),
            ("odd) S (x", 'R', SchedPolicy::Fifo, false)
        );
        let usage = TaskUsage { cpu_ticks: 12, thread_count: 3, start_ticks: 1_124_659, cpu: 6 };
        assert_eq!(stat.usage, Some(usage));
    }

    #[test]
    fn a_cut_line_has_no_usage_and_junk_is_none() {
        let cut = LINE.split_once(" 17 6").unwrap().0;
        assert_eq!(TaskStat::parse(cut).unwrap().usage, None);
        assert_eq!(TaskStat::parse(&LINE.replace(" 17 6 ", " 17 99999999 ")).unwrap().usage, None);
        for junk in ["", "1 init S", "1 (init", ") S 1 2 3 4 5 6", "1 (x) S 1 2 3 4 5 x"] {
            assert_eq!(TaskStat::parse(junk), None, "{junk}");
        }
    }

    #[test]
    fn this_task_is_read() {
        let stat = TaskStat::read(&Root::live(), "/proc/thread-self/stat").into_known().unwrap();
        assert!(stat.usage.unwrap().thread_count >= 1);
        assert!(TaskStat::read(&Root::live(), "/proc/0/stat").is_absent());
    }
}
