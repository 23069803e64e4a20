//! CPUs on which processes spin, and the processes that share them.
//!
//! A sleeping process takes a CPU from a spinning one for as long as it has work: that costs both a switch, and is
//! measured. Two processes that spin on one CPU take whole time slices from each other, and only that would be
//! measured.

use super::{Point, Room, RoomFacts, judge::unknown};
use crate::{Mode, PipelineParameters, ProcessRole};
use lowlat_host::CpuId;
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet},
};

/// Processes with the same role.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Processes {
    role: ProcessRole,
    count: u32,
    spins: bool,
    /// CPU of each process in turn; empty if the kernel places them.
    cpus: Vec<CpuId>,
}

impl Processes {
    /// The CPU of each that has one.
    fn places(&self) -> impl Iterator<Item = CpuId> {
        let count = if self.cpus.is_empty() { 0 } else { self.count };
        self.cpus.iter().copied().cycle().take(usize::try_from(count).unwrap_or(0))
    }

    /// Returns "md" or "3 strategies".
    fn words(&self, count: usize) -> String {
        match (self.role, count) {
            (ProcessRole::Host, _) => "strategy host".to_owned(),
            (ProcessRole::Strategies, 1) => "1 strategy".to_owned(),
            (ProcessRole::Strategies, _) => format!("{count} strategies"),
            (role, _) => role.to_string(),
        }
    }

    /// True if it uses enough CPU time to delay others: the processes on the way from a quote to its order, and a
    /// recorder, which inspects every stream all the time.
    fn weighs(&self) -> bool {
        !matches!(self.role, ProcessRole::Master | ProcessRole::Cached)
    }
}

/// Returns the number of processes of a run that never sleep ([`ProcessRole::spins`]).
pub fn spinning(parameters: &PipelineParameters) -> u32 {
    processes(parameters).iter().filter(|of| of.spins).map(|of| of.count).sum()
}

fn processes(parameters: &PipelineParameters) -> Vec<Processes> {
    let PipelineParameters { strategies, host_core, pins, .. } = parameters;
    let of = |role: ProcessRole| Processes {
        role,
        count: 1,
        spins: role.spins(parameters),
        cpus: pins.get(&role).cloned().unwrap_or_default(),
    };
    let traders = match host_core {
        Some(cpu) => Processes { cpus: vec![*cpu], ..of(ProcessRole::Host) },
        None => Processes { count: *strategies, ..of(ProcessRole::Strategies) },
    };
    let platform: &[ProcessRole] = if pins.contains_key(&ProcessRole::Platform) {
        &[ProcessRole::Platform]
    } else {
        &[ProcessRole::Md, ProcessRole::Td]
    };
    let beside = [ProcessRole::Master, ProcessRole::Cached, ProcessRole::Recorder];
    beside.iter().chain(platform).map(|role| of(*role)).chain([traders]).collect()
}

/// Pinned processes by CPU, with their number there.
fn by_cpu(processes: &[Processes]) -> BTreeMap<CpuId, Vec<(&Processes, usize)>> {
    let mut by_cpu: BTreeMap<CpuId, Vec<(&Processes, usize)>> = BTreeMap::new();
    for of in processes {
        for cpu in of.places().collect::<BTreeSet<_>>() {
            let count = of.places().filter(|other| *other == cpu).count();
            by_cpu.entry(cpu).or_default().push((of, count));
        }
    }
    by_cpu
}

/// Judges if each spinning process has a CPU for itself.
#[allow(clippy::unnecessary_wraps, reason = "the shape of every judgement")]
pub(super) fn spinners(parameters: &PipelineParameters, facts: &RoomFacts) -> Option<Point> {
    let id = "spinners";
    let processes = processes(parameters);
    let spinning = spinning(parameters);
    if spinning == 0 {
        return None;
    }
    let conflicts = conflicts(&processes);
    if !conflicts.is_empty() {
        let conflicts = conflicts.join("; ");
        let found = format!(
            "{conflicts}: they would take whole time slices from each other, and that would be measured"
        );
        let action = "Give each that spins a CPU of its own (--pins, --host-core), or let them sleep (--mode parked), or \
                      measure it all the same with --force.";
        return Some(Point::new(id, Room::Pointless, found, action));
    }
    let Some(cpus) = facts.cpus.known() else { return Some(unknown(id, &facts.cpus)) };
    let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let found = format!("{} on {count} CPUs", words_of_spinners(&processes));
    Some(match spinning.cmp(&count) {
        Ordering::Greater => {
            let found = format!(
                "{found}: two on a CPU take whole time slices from each other, and that would be measured"
            );
            let them = match count.saturating_sub(2) {
                fit if fit > 0 && parameters.host_core.is_none() && parameters.mode == Mode::Fast => {
                    format!("Run {fit} strategies at most, let them")
                }
                _ => "Let processes".to_owned(),
            };
            let action = format!(
                "{them} sleep (--mode parked, --mode adaptive), or measure it all the same with --force."
            );
            Point::new(id, Room::Pointless, found, action)
        }
        Ordering::Equal => {
            let found = format!(
                "{found}: the others, the kernel and interrupts have no CPU but these, and wait for one now and then"
            );
            let action = "Leave a CPU free, or take the tail as that of a full host.";
            Point::new(id, Room::Doubtful, found, action)
        }
        Ordering::Less => Point::fine(id, found),
    })
}

/// Processes that spin on one CPU, as sentences without a full stop.
fn conflicts(processes: &[Processes]) -> Vec<String> {
    let conflict = |(cpu, here): (CpuId, Vec<(&Processes, usize)>)| {
        let spinning: Vec<_> = here.into_iter().filter(|(of, _)| of.spins).collect();
        let count: usize = spinning.iter().map(|(_, count)| count).sum();
        (count > 1).then(|| format!("{} spin on CPU {cpu}", list(&spinning)))
    };
    by_cpu(processes).into_iter().filter_map(conflict).collect()
}

fn list(processes: &[(&Processes, usize)]) -> String {
    let words: Vec<String> = processes.iter().map(|(of, count)| of.words(*count)).collect();
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

/// "2 processes spin (md on CPU 0, td)".
fn words_of_spinners(processes: &[Processes]) -> String {
    let spinning: Vec<&Processes> = processes.iter().filter(|of| of.spins).collect();
    let count: u32 = spinning.iter().map(|of| of.count).sum();
    let place = |of: &&Processes| {
        let words = of.words(usize::try_from(of.count).unwrap_or(0));
        match of.cpus.as_slice() {
            [cpu] => format!("{words} on CPU {cpu}"),
            _ => words,
        }
    };
    let words: Vec<String> = spinning.iter().map(place).collect();
    let process = if count == 1 { "process spins" } else { "processes spin" };
    format!("{count} {process} ({})", words.join(", "))
}

/// Judges if sleeping processes share their CPUs with others.
pub(super) fn pins(parameters: &PipelineParameters, _: &RoomFacts) -> Option<Point> {
    let id = "pins";
    let processes = processes(parameters);
    let by_cpu = by_cpu(&processes);
    if by_cpu.is_empty() {
        return None;
    }
    let mut found = Vec::new();
    for (cpu, here) in &by_cpu {
        let (spins, sleeps): (Vec<_>, Vec<_>) =
            here.iter().copied().filter(|(of, _)| of.weighs()).partition(|(of, _)| of.spins);
        // Strategies take turns among themselves, as requested.
        let roles: BTreeSet<ProcessRole> = sleeps.iter().map(|(of, _)| of.role).collect();
        let spinning: usize = spins.iter().map(|(_, count)| count).sum();
        if spinning == 1 && !sleeps.is_empty() {
            found.push(format!(
                "{} must take CPU {cpu} from {}, which spins there, whenever woken",
                list(&sleeps),
                list(&spins)
            ));
        } else if spins.is_empty() && roles.len() > 1 {
            found.push(format!("{} take turns on CPU {cpu}", list(&sleeps)));
        }
    }
    Some(if found.is_empty() {
        Point::fine(id, "nobody on the way from a quote to its order shares a CPU")
    } else {
        let action = "Where there are more CPUs, give each its own (--pins).";
        Point::new(id, Room::Doubtful, found.join("; "), action)
    })
}

#[cfg(test)]
mod tests {
    use super::{ProcessRole::*, *};
    use crate::{check::doubts, check::hindrances, check::judge, matrix, matrix::MatrixPins};
    use lowlat_host::{CpuSet, Reading, Topology};

    fn parameters(mode: Mode, pins: &[(ProcessRole, u32)]) -> PipelineParameters {
        PipelineParameters {
            strategies: 80,
            rate_per_s: 800.0,
            mode,
            duration_s: 10.0,
            pins: pins.iter().map(|(role, cpu)| (*role, vec![*cpu])).collect(),
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }

    fn with_host(mode: Mode, cpu: CpuId, pins: &[(ProcessRole, u32)]) -> PipelineParameters {
        PipelineParameters { host_core: Some(cpu), ..parameters(mode, pins) }
    }

    fn facts(cpus: u32) -> RoomFacts {
        RoomFacts { cpus: Reading::Known(CpuSet::first(cpus)), ..RoomFacts::default() }
    }

    fn of(parameters: &PipelineParameters, cpus: u32, id: &str) -> Point {
        let points = judge(parameters, &facts(cpus));
        points.into_iter().find(|point| point.id == id).unwrap_or_else(|| panic!("{id}"))
    }

    #[test]
    fn eighty_spinners_on_two_cpus_are_refused_unless_forced() {
        let points = judge(&parameters(Mode::Fast, &[]), &facts(2));
        let [point] = hindrances(&points, false)[..] else { panic!("{points:?}") };
        let words = "spinners: 82 processes spin (md, td, 80 strategies) on 2 CPUs";
        assert!(point.sentence().starts_with(words), "{}", point.sentence());
        assert!(point.action.contains("--force"));
        assert!(hindrances(&points, true).is_empty());
        assert!(doubts(&points).iter().any(|doubt| doubt.starts_with("spinners")), "a forced run says so");
        assert_eq!(spinning(&with_host(Mode::Fast, 1, &[])), 3, "a host is one process");
        assert_eq!(of(&with_host(Mode::Fast, 1, &[]), 4, "spinners").room, Room::Fine);
    }

    #[test]
    fn who_sleeps_does_not_count_against_cpus() {
        let platform = [(Master, 0), (Cached, 0), (Md, 0), (Td, 1)];
        let mixed = of(&parameters(Mode::Mixed, &platform), 2, "spinners");
        assert!(
            mixed.room == Room::Fine && mixed.found == "1 process spins (md on CPU 0) on 2 CPUs",
            "{mixed:?}"
        );
        let fast = PipelineParameters { strategies: 1, ..parameters(Mode::Fast, &platform) };
        assert_eq!(of(&fast, 2, "spinners").room, Room::Pointless, "three on two");
        let reports = of(&parameters(Mode::PlatformFast, &platform), 4, "spinners");
        assert_eq!(reports.found, "2 processes spin (md on CPU 0, td on CPU 1) on 4 CPUs");
        let threads = PipelineParameters { has_md_threads: true, ..parameters(Mode::Mixed, &platform) };
        assert_eq!(spinning(&threads), 0, "they sleep until their quotes are due");
        let full = of(&fast, 3, "spinners");
        assert_eq!(full.room, Room::Doubtful);
        assert!(
            full.found.starts_with("3 processes spin (md on CPU 0, td on CPU 1, 1 strategy)"),
            "{}",
            full.found
        );
        let points = of(&parameters(Mode::Mixed, &platform), 2, "pins");
        assert_eq!(points.room, Room::Fine, "master and cached are not on the way: {points:?}");
        let host = of(&with_host(Mode::Parked, 1, &[]), 2, "spinners");
        assert!(host.room == Room::Fine && host.found.contains("strategy host on CPU 1"), "{host:?}");
    }

    #[test]
    fn two_that_spin_on_one_cpu_are_refused_by_name() {
        let both = of(&parameters(Mode::Fast, &[(Md, 1), (Td, 1)]), 4, "spinners");
        assert_eq!(both.room, Room::Pointless);
        assert!(both.found.starts_with("md and td spin on CPU 1"), "{}", both.found);
        let host = of(&with_host(Mode::Fast, 1, &[(Md, 0), (Td, 1)]), 4, "spinners");
        assert!(host.found.starts_with("td and strategy host spin on CPU 1"), "{}", host.found);
        let unknown = RoomFacts { cpus: Reading::Denied, ..RoomFacts::default() };
        let points = judge(&with_host(Mode::Fast, 1, &[(Td, 1)]), &unknown);
        assert_eq!(hindrances(&points, false).len(), 1, "known without the host");
        let mut pinned = parameters(Mode::Fast, &[]);
        (pinned.strategies, pinned.pins) = (3, [(Strategies, vec![2, 3])].into());
        assert!(of(&pinned, 8, "spinners").found.starts_with("2 strategies spin on CPU 2"));
    }

    #[test]
    fn sleepers_beside_others_make_figures_doubtful() {
        let under = of(&with_host(Mode::Parked, 1, &[(Md, 0), (Td, 1)]), 4, "pins");
        assert_eq!(under.room, Room::Doubtful);
        assert!(under.found.starts_with("td must take CPU 1 from strategy host"), "{}", under.found);
        let beside = of(&parameters(Mode::Parked, &[(Md, 1), (Td, 1)]), 4, "pins");
        assert!(beside.found.starts_with("md and td take turns on CPU 1"), "{}", beside.found);
        assert_eq!(of(&parameters(Mode::Fast, &[(Master, 0), (Cached, 0)]), 400, "pins").room, Room::Fine);
    }

    #[test]
    fn a_platform_in_one_process_is_one_spinner() {
        let one = with_host(Mode::Fast, 1, &[(Platform, 0)]);
        assert_eq!(spinning(&one), 2);
        let point = of(&one, 2, "spinners");
        assert_eq!(point.room, Room::Doubtful);
        assert!(point.found.contains("(platform on CPU 0, strategy host on CPU 1)"), "{}", point.found);
        assert_eq!(of(&with_host(Mode::Fast, 1, &[(Platform, 1)]), 2, "spinners").room, Room::Pointless);
    }

    #[test]
    fn rows_of_mixed_mode_and_of_the_host_run_on_two_cpus() {
        let (cpus, topology) = (CpuSet::first(2), Topology::default());
        let pins = MatrixPins::new(&cpus, &topology);
        for row in matrix::rows().filter(|row| "RMHPJKOQ".contains(row.group.letter)) {
            let points = judge(&row.parameters(1.0, &pins), &facts(2));
            assert!(hindrances(&points, false).is_empty(), "{}: {points:?}", row.id());
        }
    }
}
