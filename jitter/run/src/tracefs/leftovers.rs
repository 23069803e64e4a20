//! Instances left behind by a killed run.

use super::{
    TraceError, Tracefs,
    instance::{PREFIX, remove_directory},
};
use lowlat_host_run::{Root, task_stat::TaskStat};

/// An instance whose process no longer exists.
#[derive(Debug)]
pub struct Leftover {
    /// Name of its directory below `instances/`.
    pub name: String,
    /// Reason why it still exists; `None` if it has been removed.
    pub problem: Option<TraceError>,
}

/// Removes lowlat's instances whose process is dead, and reports them. Instances of a running lowlat are
/// kept: they are identified by the process's number and start time, and the kernel does not remove an
/// instance in use.
pub fn remove_leftovers(tracefs: &Tracefs) -> Vec<Leftover> {
    let is_leftover = |name: &String| {
        owner(name).is_some_and(|(pid, started)| start_time(pid).is_none_or(|present| present != started))
    };
    let names = tracefs.list("instances").into_iter().filter(is_leftover);
    let remove = |name: String| {
        let directory = format!("instances/{name}");
        let answer = remove_directory(tracefs, &directory, 1);
        let problem = answer.err().map(|source| TraceError::not_removed(&tracefs.shown(&directory), &source));
        Leftover { name, problem }
    };
    names.map(remove).collect()
}

/// The process that created an instance, by its number and start time; `None` if it is not lowlat's.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Start time of a process, in clock ticks since boot; `None` if it does not exist, or is dead and not yet
/// waited for.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    let stat = TaskStat::read(&Root::live(), &format!("/proc/{pid}/stat")).into_known()?;
    stat.usage.filter(|_| !stat.is_dead()).map(|usage| usage.start_ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_owner() {
        assert_eq!(owner("lowlat-12-3456-0"), Some((12, 3456)));
        for name in [
            "lowlat-",
            "lowlat-12",
            "lowlat-x-1-0",
            "lowlat--1",
            "other-12-3456-0",
            "lowlat-12-99999999999999999999",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_has_one_start_time() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0));
        assert_eq!(own, start_time(std::process::id()));
        assert_eq!(start_time(u32::MAX), None);
    }
}
