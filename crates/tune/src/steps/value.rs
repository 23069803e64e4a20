//! Sysctls, and files of /sys, /proc and debugfs that take a value.

use super::{Gathering, gathering::cpu_list};
use lowlat_host::snapshot::sysctl_zeroed_with;
use lowlat_sys::undo::{Comparison, State, TargetSpec, UndoError};

pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    change: usize,
    path: &str,
    after: &str,
) -> Result<(), UndoError> {
    // First the text as it stands there, whatever it is: it says which comparison fits.
    let exact = TargetSpec::value(path, Comparison::Exact);
    let Some(present) = gathering.present_value(change, &exact)? else { return Ok(()) };
    let comparison = comparison(path, &present, after);
    if comparison == Comparison::CpuList {
        if cpu_list(gathering, change, after).is_some() {
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

/// What the kernel sets to 0 with the value before is a step behind it, which finds that it is done. A rollback comes to
/// it first: writing the old number brings the other value's old 0 along, and writing that 0 alone would leave both at 0.
fn goes_along(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    let target = TargetSpec::value(path, Comparison::Number);
    match gathering.glance(&target) {
        Some(State::Value(old)) if old.trim().parse::<u64>().is_ok_and(|number| number > 0) => {
            gathering.step(change, target, State::Value(old), State::Value("0".to_owned()))
        }
        _ => Ok(()),
    }
}

/// When two texts of the attribute mean the same. It must come out the same before the value is written and after, so
/// that a step that a crash cut off is known again.
fn comparison(path: &str, present: &str, after: &str) -> Comparison {
    let is_choice = present.split_once('[').is_some_and(|(_, rest)| rest.contains(']'));
    if is_choice {
        Comparison::Choice
    } else if path.starts_with("/proc/sys/") && path.ends_with("cpumask") {
        // Sysctls print sets of CPUs as lists, whatever their names say (proc_do_large_bitmap).
        Comparison::CpuList
    } else if after.trim().parse::<i128>().is_ok() {
        Comparison::Number
    } else {
        Comparison::Words
    }
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
