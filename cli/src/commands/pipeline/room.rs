//! Facts about what the host offers to a run.

use super::{beside, control_group};
use crate::output;
use lowlat_host::Reading;
use lowlat_host_run::{
    Root, affinity,
    capability::{self, Capability},
};
use lowlat_node::address::{RunFolder, holder};
use lowlat_pipeline::check::RoomFacts;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::{Resource, getrlimit},
};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
const PAGE_BYTES: u64 = 2 << 20;

/// Reads the facts. `folder` is that of a run with a name, which may have a master already.
pub fn read(root: &Root, folder: Option<&RunFolder>) -> RoomFacts {
    let meminfo = root.read("/proc/meminfo");
    let swap = |name| bytes_of(&meminfo, name);
    RoomFacts {
        cpus: affinity::current().map_or(Reading::Absent, Reading::Known),
        memory_available_bytes: bytes_of(&meminfo, "MemAvailable"),
        swap_used_bytes: match (swap("SwapTotal"), swap("SwapFree")) {
            (Reading::Known(total), Reading::Known(free)) => Reading::Known(total.saturating_sub(free)),
            (Reading::Known(_), other) | (other, _) => other,
        },
        locked_bytes_max: capability::has(root, Capability::IpcLock)
            .map(|is_free| if is_free { None } else { getrlimit(Resource::Memlock).current }),
        open_files_max: Reading::Known(getrlimit(Resource::Nofile).maximum),
        huge_bytes_free: root.read_as::<u64>(POOL, "a number of pages").map(|pages| pages * PAGE_BYTES),
        groups: control_group::read(root),
        other_runs: beside::other_runs(root),
        running_master: folder.map_or(Reading::Absent, master_of),
    }
}

/// Value of a line of /proc/meminfo, in bytes.
fn bytes_of(meminfo: &Reading<String>, name: &str) -> Reading<u64> {
    meminfo.as_ref().and_then(|text| {
        let Some(line) = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')) else {
            return Reading::Absent;
        };
        let kib = line.trim().strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok());
        let expected = format!("a number of kB after {name}");
        Reading::understood(kib.map(|kib| kib << 10), "/proc/meminfo", line, expected)
    })
}

/// The process that holds the lock of a run folder.
fn master_of(folder: &RunFolder) -> Reading<String> {
    let file = match folder.open_lock() {
        Ok(file) => file,
        Err(error) if error.is_absent() => return Reading::Absent,
        Err(_) => return Reading::Denied,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Reading::Absent,
        Err(Errno::WOULDBLOCK) => {
            let pid = holder(&file).map_or_else(|| "with an unknown id".to_owned(), |pid| pid.to_string());
            Reading::Known(format!("process {pid}"))
        }
        Err(_) => Reading::Denied,
    }
}

/// Prints warnings about a run on stderr before it starts.
pub fn talk(command: &str, doubts: &[String]) {
    for doubt in doubts {
        output::talk(&format!("lowlat pipeline {command}: {doubt}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn root(meminfo: &str) -> Root {
        Root::in_memory("test", [("/proc/meminfo".to_owned(), meminfo.as_bytes().to_vec())])
    }

    #[test]
    fn absent_and_unparsable_are_distinct() {
        let facts = read(&root("MemAvailable:   2048 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\n"), None);
        assert_eq!(facts.memory_available_bytes, Reading::Known(2 << 20));
        assert_eq!(facts.swap_used_bytes, Reading::Known(60 << 10));
        assert!(facts.other_runs.is_absent() && facts.locked_bytes_max.is_absent());
        assert!(facts.huge_bytes_free.is_absent() && facts.running_master.is_absent());
        let facts = read(&root("MemAvailable: much\n"), None);
        assert!(matches!(facts.memory_available_bytes, Reading::Unparsable(_)));
        assert!(facts.swap_used_bytes.is_absent());
    }

    #[test]
    fn the_holder_of_the_lock_is_the_master() {
        let folder = tempfile::tempdir().unwrap();
        let lock = folder.path().join("lock");
        let run = RunFolder::at(folder.path()).unwrap();
        assert!(master_of(&run).is_absent());
        std::fs::write(&lock, "4711\n").unwrap();
        assert!(master_of(&run).is_absent(), "a free lock belongs to a master that has ended");
        let held = File::open(&lock).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(master_of(&run), Reading::Known("process 4711".to_owned()));
    }
}
