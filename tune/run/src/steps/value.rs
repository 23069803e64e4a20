//! Sysctls, and files of /sys, /proc and debugfs that accept a value.

use super::{Gathering, gathering::cpu_list};
use lowlat_host::snapshot::sysctl_zeroed_with;
use lowlat_plan::Plan;
use lowlat_settings::change::{Change, Target};
use lowlat_undo::{Comparison, State, TargetSpec, UndoError};

pub(super) fn prepare(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    let after = gathering.after(change);
    // First the present text, which decides the comparison.
    let exact = TargetSpec::value(path, Comparison::Exact);
    let Some(present) = gathering.present_value(change, &exact)? else { return Ok(()) };
    let comparison = comparison(path, &present, after);
    if comparison == Comparison::CpuList {
        if cpu_list(gathering, change).is_some() {
            return gathering.value(change, TargetSpec::value(path, comparison), after);
        }
        return Ok(());
    }
    let (old, new) = (State::Value(present), State::Value(after.to_owned()));
    gathering.step(change, TargetSpec::value(path, comparison), old, new)?;
    match sysctl_zeroed_with(path) {
        Some(zeroed) => goes_along(gathering, change, zeroed),
        None => Ok(()),
    }
}

/// Adds a step for a value that the kernel sets to 0 when the value before is written. A rollback restores
/// it first: writing its old number sets the other value to its old 0, while writing only that 0 would leave
/// both at 0.
fn goes_along(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    let target = TargetSpec::value(path, Comparison::Number);
    match gathering.glance(&target) {
        Some(State::Value(old)) if old.trim().parse::<u64>().is_ok_and(|number| number > 0) => {
            gathering.step(change, target, State::Value(old), State::Value("0".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns how to compare two texts of the attribute. The result must be the same before and after the value is
/// written, so that a step is recognized after a crash.
fn comparison(path: &str, present: &str, after: &str) -> Comparison {
    let is_choice = present.split_once('[').is_some_and(|(_, rest)| rest.contains(']'));
    if is_choice {
        Comparison::Choice
    } else if path.starts_with("/proc/sys/") && path.ends_with("cpumask") {
        // Sysctls print sets of CPUs as lists, despite their names (proc_do_large_bitmap).
        Comparison::CpuList
    } else if after.trim().parse::<i128>().is_ok() {
        Comparison::Number
    } else {
        Comparison::Words
    }
}

/// A change of one of them.
#[derive(Clone, Copy)]
pub(super) struct Numbered {
    pub(super) change: usize,
    pub(super) number: u32,
}

/// The changes whose targets `number_of` numbers, in the order of their numbers.
pub(super) fn numbered(plan: &Plan, number_of: impl Fn(&Target) -> Option<u32>) -> Vec<Numbered> {
    let of =
        |(change, planned): (usize, &Change)| Some(Numbered { change, number: number_of(&planned.target)? });
    let mut all: Vec<Numbered> = plan.changes.iter().enumerate().filter_map(of).collect();
    all.sort_by_key(|wanted| wanted.number);
    all
}

/// Each change with the thing of its number; then the changes and the things that are left, in their order.
pub(super) struct Paired<T> {
    pub(super) pairs: Vec<(Numbered, T)>,
    pub(super) renumbered: Vec<Numbered>,
    pub(super) others: std::vec::IntoIter<T>,
}

pub(super) fn paired<T>(all: &[Numbered], mut things: Vec<T>, number_of: impl Fn(&T) -> u32) -> Paired<T> {
    let (mut pairs, mut renumbered) = (Vec::new(), Vec::new());
    for wanted in all {
        match things.iter().position(|thing| number_of(thing) == wanted.number) {
            Some(at) => pairs.push((*wanted, things.remove(at))),
            None => renumbered.push(*wanted),
        }
    }
    Paired { pairs, renumbered, others: things.into_iter() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_the_kernel_prints_them() {
        let of = |path, present, after| comparison(path, present, after);
        assert_eq!(of("/sys/x/enabled", "[always] madvise never\n", "never"), Comparison::Choice);
        assert_eq!(of("/sys/x/enabled", "always madvise [never]\n", "never"), Comparison::Choice);
        assert_eq!(of("/proc/sys/kernel/watchdog_cpumask", "0-15\n", "0,8"), Comparison::CpuList);
        assert_eq!(of("/proc/sys/kernel/sched_rt_runtime_us", "950000\n", "-1"), Comparison::Number);
        assert_eq!(of("/proc/sys/net/ipv4/tcp_rmem", "4096\t1\t2\n", "4096 1 3"), Comparison::Words);
        assert_eq!(of("/sys/x/scaling_governor", "powersave\n", "performance"), Comparison::Words);
    }
}
