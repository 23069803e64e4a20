//! Other pipelines on this machine, found by the locks that masters hold on their run folders.
//!
//! This only reads the kernel's list. Trying to take a lock could make a master fail that is just
//! starting.

use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_node::address::{RunFolder, holder, is_name};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
};

/// The kernel's list of locks (proc_locks(5)).
const LOCKS: &str = "/proc/locks";
/// Largest number of run folders to inspect: any user may create them.
const ENTRIES_MAX: usize = 1000;

/// Pipelines of other processes, as "process 4711 (run monday)", by process. Those of other users
/// are found if this user may read their folders.
pub fn other_runs(root: &Root) -> Reading<Vec<String>> {
    root.read(LOCKS).as_ref().and_then(|text| match holders(text) {
        Ok(holders) => Reading::Known(held(&holders, &homes(), process::id())),
        Err(line) => Reading::unparsable(LOCKS, line, "a process and a file after FLOCK and WRITE"),
    })
}

/// Processes by the inode of the file that they have locked exclusively.
type Holders = BTreeMap<u64, BTreeSet<u32>>;

/// Parses lines such as "7: FLOCK  ADVISORY  WRITE 4711 00:1a:123 0 EOF". Returns the first
/// malformed line as an error.
fn holders(locks: &str) -> Result<Holders, &str> {
    let mut holders = Holders::new();
    for line in locks.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // A lock that waits has an arrow in place of the type.
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = words.as_slice() else { continue };
        let inode = file.rsplit(':').next().and_then(|inode| inode.parse().ok());
        match (pid.parse::<i64>(), inode) {
            // 0 or less: a process in another PID namespace.
            (Ok(pid), Some(inode)) => {
                holders.entry(inode).or_default().extend(u32::try_from(pid).ok().filter(|pid| *pid > 0));
            }
            _ => return Err(line),
        }
    }
    Ok(holders)
}

/// Directories of run folders: of this user, of root, and of other users.
fn homes() -> BTreeSet<PathBuf> {
    let own = RunFolder::named("any").ok().and_then(|any| Some(any.path().parent()?.to_owned()));
    let users = entries(Path::new("/run/user")).map(|user| user.join("lowlat"));
    let without_runtime = entries(Path::new("/tmp"))
        .filter(|path| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"lowlat-")))
        .take(ENTRIES_MAX);
    own.into_iter().chain([PathBuf::from("/run/lowlat")]).chain(users).chain(without_runtime).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// The runs whose lock is held by the process whose id is in the lock file.
fn held(holders: &Holders, homes: &BTreeSet<PathBuf>, own: u32) -> Vec<String> {
    let mut runs = BTreeMap::new();
    for folder in homes.iter().flat_map(|home| entries(home)).take(ENTRIES_MAX) {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else { continue };
        let Ok(run) = RunFolder::at(&folder) else { continue };
        // Names by other users are printed on this user's terminal, and their locks may be any kind
        // of file.
        let Some(lock) = Some(run).filter(|_| is_name(name)).and_then(|run| run.open_lock().ok()) else {
            continue;
        };
        let Ok(inode) = lock.metadata().map(|known| known.ino()) else { continue };
        // Inode numbers are unique only within a file system, so the pid in the file is compared
        // too.
        if let Some(pid) = holder(&lock)
            && pid != own
            && holders.get(&inode).is_some_and(|pids| pids.contains(&pid))
        {
            runs.insert(pid, format!("process {pid} (run {name})"));
        }
    }
    runs.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FlockOperation, flock};
    use std::fs::File;

    #[test]
    fn lines_of_locks_are_read() {
        let text = "1: POSIX  ADVISORY  WRITE 5 00:1a:9 0 EOF\n2: FLOCK  ADVISORY  WRITE 4711 00:1a:123 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 4712 00:1a:123 0 EOF\n3: FLOCK  ADVISORY  READ 6 00:1a:7 0 EOF\n\
                    4: FLOCK  ADVISORY  WRITE 0 00:1a:8 0 EOF\n";
        let found = holders(text).unwrap();
        assert_eq!(found.get(&123), Some(&BTreeSet::from([4711])));
        assert!(found.get(&8).is_some_and(BTreeSet::is_empty), "a process in another namespace");
        assert_eq!(found.len(), 2);
        assert!(holders("1: FLOCK ADVISORY WRITE many 00:1a:1 0 EOF").is_err());
    }

    #[test]
    fn a_run_counts_only_while_its_master_holds_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let homes = BTreeSet::from([home.path().to_owned()]);
        let lock = home.path().join("monday/lock");
        fs::create_dir(home.path().join("monday")).unwrap();
        fs::write(&lock, format!("{}\n", process::id())).unwrap();
        let found = |own: u32| held(&holders(&fs::read_to_string(LOCKS).unwrap()).unwrap(), &homes, own);
        assert!(found(0).is_empty(), "a free lock belongs to a master that has ended");
        let file = File::open(&lock).unwrap();
        flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert_eq!(found(0), [format!("process {} (run monday)", process::id())]);
        assert!(found(process::id()).is_empty(), "this process itself is left out");
        drop(file);
        assert!(found(0).is_empty());
    }

    #[test]
    fn a_malformed_list_of_locks_is_unparsable() {
        let root = |text: &str| Root::in_memory("test", [(LOCKS.to_owned(), text.as_bytes().to_vec())]);
        assert!(other_runs(&Root::in_memory("test", [])).is_absent());
        assert!(matches!(other_runs(&root("1: FLOCK ADVISORY WRITE x y 0 EOF")), Reading::Unparsable(_)));
    }
}
