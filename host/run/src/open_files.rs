//! Limit of the files that this process may have open at the same time.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files open besides those that a caller counts: traces, counters, sockets.
const OTHERS: u64 = 256;

/// Allows the process to open this many files besides its others, up to its hard limit. A host with 1,024
/// CPUs needs more than the usual default. A limit that cannot be raised is reported when a file is opened.
pub fn allow(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = count.saturating_add(OTHERS);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
    }
}
