//! The judgements.
#![allow(
    clippy::unnecessary_wraps,
    reason = "every judgement has the shape of one that may have nothing to say"
)]

use super::{Memory, Point, Room, RoomFacts, cores, files_needed};
use crate::{PipelineParameters, PipelineRecord};
use lowlat_host::{CpuSet, Reading};

type Judgement = fn(&PipelineParameters, &RoomFacts) -> Option<Point>;

/// Every point in the order of the report. A new one is a function and a line here.
const POINTS: &[Judgement] = &[
    memory,
    group_memory,
    group_cpus,
    swap,
    cores::spinners,
    cores::pins,
    absent_pins,
    locked_memory,
    open_files,
    huge_pages,
    master,
    other_runs,
];

/// The id of the point on runs beside this one.
pub const OTHER_RUNS: &str = "other runs";

/// The id of the point on the pool of huge pages.
pub const HUGE_PAGES: &str = "huge pages";

/// Judges whether there is room for a run. Points with nothing to report are left out.
pub fn judge(parameters: &PipelineParameters, facts: &RoomFacts) -> Vec<Point> {
    POINTS.iter().filter_map(|point| point(parameters, facts)).collect()
}

pub(super) fn unknown<T>(id: &'static str, reading: &Reading<T>) -> Point {
    let why = match reading {
        Reading::Denied => "it may not be read by this user".to_owned(),
        Reading::Unparsable(why) => why.to_string(),
        _ => "the host does not tell".to_owned(),
    };
    Point::new(id, Room::Unknown, format!("not known, {why}"), "")
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn memory(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "memory";
    let bytes = Memory::of(parameters).unpooled_bytes();
    let Some(available) = facts.memory_available_bytes.known() else {
        return Some(unknown(id, &facts.memory_available_bytes));
    };
    let found = format!(
        "{} are needed for {} strategies, {} are available",
        mib(bytes),
        parameters.strategies,
        mib(*available)
    );
    Some(if bytes > *available {
        let action = "Run fewer strategies: with more the host swaps or kills, and measures that.";
        Point::new(id, Room::Impossible, found, action)
    } else if bytes > available / 10 * 9 {
        let action = "Free memory, or run fewer strategies: others on the host may have to swap.";
        Point::new(id, Room::Doubtful, found, action)
    } else {
        Point::fine(id, found)
    })
}

fn group_memory(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "control group";
    let left = match &facts.groups.memory_left_bytes {
        Reading::Known(left) => (*left)?,
        // Without control groups there is no limit.
        Reading::Absent => return None,
        other => return Some(unknown(id, other)),
    };
    let bytes = Memory::of(parameters).unpooled_bytes();
    (bytes > left).then(|| {
        let (needed, left) = (mib(bytes), mib(left));
        let found = format!("{needed} are needed, its limit leaves {left}: the kernel would kill processes");
        let action = "Raise it (MemoryMax=, memory.max), or run fewer strategies.";
        Point::new(id, Room::Impossible, found, action)
    })
}

fn group_cpus(_: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "CPU quota";
    let cpus = match &facts.groups.cpus {
        Reading::Known(cpus) => (*cpus)?,
        Reading::Absent => return None,
        other => return Some(unknown(id, other)),
    };
    let found = format!(
        "the control group allows {cpus:.2} CPUs: once they are used up, every process stops until the next period"
    );
    Some(Point::new(id, Room::Doubtful, found, "Remove it for the run (CPUQuota=, cpu.max)."))
}

fn swap(_: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "swap";
    Some(match facts.swap_used_bytes.known() {
        None => unknown(id, &facts.swap_used_bytes),
        Some(0) => Point::fine(id, "none in use"),
        Some(used) => {
            let found = format!("{} in use: pages that come back from a disk take milliseconds", mib(*used));
            let action = "Free memory and turn swap off and on again (swapoff -a; swapon -a), or run fewer strategies.";
            Point::new(id, Room::Doubtful, found, action)
        }
    })
}

fn absent_pins(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "pinned CPUs";
    let named: CpuSet = parameters.pins.values().flatten().copied().chain(parameters.host_core).collect();
    if named.is_empty() {
        return None;
    }
    let Some(cpus) = facts.cpus.known() else { return Some(unknown(id, &facts.cpus)) };
    let absent = named.difference(cpus);
    (!absent.is_empty()).then(|| {
        let found = format!("CPU {absent} may not be used by this process, which may use {cpus}");
        let action = "Pin to CPUs of that list, or widen it (taskset, cpuset).";
        Point::new(id, Room::Impossible, found, action)
    })
}

fn locked_memory(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "locked memory";
    let bytes = Memory::of(parameters).shared_bytes;
    let needed = mib(bytes);
    Some(match facts.locked_bytes_max.known() {
        None => unknown(id, &facts.locked_bytes_max),
        Some(Some(limit)) if *limit < bytes => {
            let limit = mib(*limit);
            let found =
                format!("{needed} should be locked, the limit is {limit}: the rest can be swapped out");
            let action = "Raise it (ulimit -l unlimited, LimitMEMLOCK=infinity), or run fewer strategies.";
            Point::new(id, Room::Doubtful, found, action)
        }
        Some(_) => Point::fine(id, format!("{needed} are within the limit")),
    })
}

fn open_files(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "open files";
    let needed = files_needed(parameters);
    Some(match facts.open_files_max.known() {
        None => unknown(id, &facts.open_files_max),
        Some(Some(limit)) if *limit < needed => {
            let found = format!("{needed} files are open at once, the limit is {limit}");
            let action = "Raise it (ulimit -Hn, LimitNOFILE=), or run fewer strategies.";
            Point::new(id, Room::Impossible, found, action)
        }
        Some(_) => Point::fine(id, format!("{needed} are within the limit")),
    })
}

fn huge_pages(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = HUGE_PAGES;
    if !parameters.may_use_huge_pages {
        return None;
    }
    let memory = Memory::of(parameters);
    let Some(free) = facts.huge_bytes_free.known() else { return Some(unknown(id, &facts.huge_bytes_free)) };
    let (needed, there) = (mib(memory.pooled_bytes), mib(*free));
    if *free >= memory.pooled_bytes {
        return Some(Point::fine(id, format!("{needed} of {there} free are taken")));
    }
    let found =
        format!("{needed} of 2 MiB pages are needed, {there} are free: the rest comes in 4 KiB pages");
    let action = format!(
        "Reserve them before (sysctl vm.nr_hugepages={}, where nothing else uses the pool).",
        memory.huge_pages()
    );
    Some(Point::new(id, Room::Doubtful, found, action))
}

fn master(_: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "master";
    match &facts.running_master {
        Reading::Known(who) => {
            let action = "End it, or give this run another --name; without one it has its own.";
            let found = format!("one of this name runs already ({who})");
            Some(Point::new(id, Room::Impossible, found, action))
        }
        Reading::Absent => None,
        other => Some(unknown(id, other)),
    }
}

fn other_runs(_: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    Some(match facts.other_runs.known() {
        None => unknown(OTHER_RUNS, &facts.other_runs),
        Some(runs) => others(runs, false).unwrap_or_else(|| Point::fine(OTHER_RUNS, "none")),
    })
}

/// Returns the point on pipelines that run at the same time, if any. `is_over`: they were found during a run that has
/// ended.
pub fn others(runs: &[String], is_over: bool) -> Option<Point> {
    let what = if runs.len() == 1 { "a pipeline" } else { "pipelines" };
    let (verb, takes, action) = match (is_over, runs.len()) {
        (true, _) => ("ran", "took", "Measure again without."),
        (false, 1) => {
            ("runs", "takes", "Let it end, or stop it (kill -INT with its number), and measure again.")
        }
        (false, _) => {
            ("run", "takes", "Let them end, or stop them (kill -INT with their numbers), and measure again.")
        }
    };
    (!runs.is_empty()).then(|| {
        let found = format!(
            "{} {verb} {what} at the same time: each {takes} CPU time from the other, and the figures of both are spoilt",
            runs.join(" and ")
        );
        Point::new(OTHER_RUNS, Room::Doubtful, found, action)
    })
}

/// Returns the warning about other runs that started during this one, if any.
pub fn came_beside(record: &PipelineRecord) -> Option<String> {
    others(&record.runs_beside, true).map(|point| point.sentence())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, ProcessRole};
    use crate::{check::GroupLimits, check::doubts, check::hindrances};
    use std::collections::BTreeMap;

    fn parameters(mode: Mode) -> PipelineParameters {
        PipelineParameters {
            strategies: 80,
            rate_per_s: 800.0,
            mode,
            duration_s: 10.0,
            pins: BTreeMap::new(),
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }

    fn facts(cpus: u32) -> RoomFacts {
        RoomFacts {
            cpus: Reading::Known(CpuSet::first(cpus)),
            memory_available_bytes: Reading::Known(8 << 30),
            swap_used_bytes: Reading::Known(0),
            locked_bytes_max: Reading::Known(None),
            open_files_max: Reading::Known(Some(524_288)),
            huge_bytes_free: Reading::Known(0),
            running_master: Reading::Absent,
            groups: GroupLimits { memory_left_bytes: Reading::Known(None), cpus: Reading::Known(None) },
            other_runs: Reading::Known(Vec::new()),
        }
    }

    fn of(parameters: &PipelineParameters, facts: &RoomFacts, id: &str) -> Point {
        judge(parameters, facts).into_iter().find(|point| point.id == id).unwrap_or_else(|| panic!("{id}"))
    }

    #[test]
    fn a_host_with_room_has_nothing_against_it() {
        let points = judge(&parameters(Mode::Parked), &facts(12));
        assert!(hindrances(&points, false).is_empty() && doubts(&points).is_empty(), "{points:?}");
    }

    #[test]
    fn memory_limits_and_a_running_master_cannot_be_forced() {
        let small = RoomFacts {
            memory_available_bytes: Reading::Known(64 << 20),
            locked_bytes_max: Reading::Known(Some(8 << 20)),
            open_files_max: Reading::Known(Some(256)),
            running_master: Reading::Known("process 4711".into()),
            groups: GroupLimits {
                memory_left_bytes: Reading::Known(Some(64 << 20)),
                cpus: Reading::Known(Some(0.5)),
            },
            ..facts(12)
        };
        let points = judge(&parameters(Mode::Parked), &small);
        let ids: Vec<&str> = hindrances(&points, true).iter().map(|point| point.id).collect();
        assert_eq!(ids, ["memory", "control group", "open files", "master"]);
        let quota = of(&parameters(Mode::Parked), &small, "CPU quota");
        assert!(quota.room == Room::Doubtful && quota.found.contains("0.50 CPUs"), "{quota:?}");
    }

    #[test]
    fn pins_outside_the_allowed_cpus_are_refused() {
        let pins = [(ProcessRole::Md, vec![9])].into();
        let point = of(&PipelineParameters { pins, ..parameters(Mode::Parked) }, &facts(4), "pinned CPUs");
        assert!(point.room == Room::Impossible && point.found.contains("CPU 9"), "{point:?}");
    }

    #[test]
    fn what_is_not_known_is_not_taken_for_fine() {
        let points =
            judge(&parameters(Mode::Fast), &RoomFacts { cpus: Reading::Denied, ..RoomFacts::default() });
        assert!(points.iter().all(|point| point.room == Room::Unknown), "{points:?}");
        assert!(points.iter().any(|point| point.found.contains("may not be read by this user")));
        assert!(hindrances(&points, false).is_empty());
    }

    #[test]
    fn swap_and_missing_huge_pages_make_figures_doubtful() {
        let swapping = RoomFacts { swap_used_bytes: Reading::Known(300 << 20), ..facts(12) };
        let huge = PipelineParameters { may_use_huge_pages: true, ..parameters(Mode::Parked) };
        let points = judge(&huge, &swapping);
        let doubtful: Vec<&str> =
            points.iter().filter(|point| point.room == Room::Doubtful).map(|point| point.id).collect();
        assert_eq!(doubtful, ["swap", "huge pages"]);
        let needed = Memory::of(&huge);
        assert!(needed.pooled_bytes > 0 && Memory::of(&parameters(Mode::Parked)).pooled_bytes == 0);
        assert!(of(&huge, &swapping, "huge pages").action.contains(&needed.huge_pages().to_string()));
    }

    #[test]
    fn a_run_beside_makes_figures_doubtful() {
        let beside = |runs: &[&str]| RoomFacts {
            other_runs: Reading::Known(runs.iter().map(|run| (*run).to_owned()).collect()),
            ..facts(12)
        };
        let points = judge(&parameters(Mode::Parked), &beside(&["process 4711 (run a)"]));
        assert!(hindrances(&points, false).is_empty());
        let said = doubts(&points);
        assert!(said.len() == 1 && said[0].starts_with("other runs: process 4711 (run a) runs"), "{said:?}");
        let both =
            doubts(&judge(&parameters(Mode::Parked), &beside(&["process 1 (run a)", "process 2 (run b)"])));
        assert!(both[0].contains("process 1 (run a) and process 2 (run b) run pipelines"), "{both:?}");
        let after = others(&["process 4711 (run a)".to_owned()], true).unwrap().sentence();
        assert!(after.contains("ran a pipeline") && !after.contains("kill"), "{after}");
    }

    #[test]
    fn a_host_of_strategies_takes_less() {
        let host = PipelineParameters { host_core: Some(3), ..parameters(Mode::Parked) };
        assert!(Memory::of(&host).total_bytes() < Memory::of(&parameters(Mode::Parked)).total_bytes());
        assert!(files_needed(&host) < files_needed(&parameters(Mode::Parked)));
    }
}
