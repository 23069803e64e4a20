//! How many files this process may have open at once.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that are open besides those that a caller counts: traces, counters, sockets.
const OTHERS: u64 = 256;

/// Lets the process open so many files besides its others, as far as its hard limit allows: a host of 1,024 CPUs needs
/// more than most are given at first. A limit that cannot be raised shows when a file is opened, and is told then.
pub fn allow(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = count.saturating_add(OTHERS);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}
