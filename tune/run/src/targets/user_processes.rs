//! The CPUs of process 1 and of all running processes that have the same ones. They do not survive a reboot; systemd's
//! CPUAffinity= sets those of the next boot.
//!
//! Processes inherit the CPUs of process 1 unless they request others. So one value represents all: a change moves the
//! threads that have the CPUs of process 1, and its rollback moves these and the threads started since. A thread with
//! other CPUs was pinned on purpose and stays.

use super::{cpu_list, failed, is_live_or};
use lowlat_host::{CpuSet, Reading};
use lowlat_host_run::{
    Root, scheduling,
    task_stat::{TaskStat, cpus_allowed},
};
use lowlat_undo::{Comparison, HostError, State, Target, TargetSpec, Writer};
use std::io;

const STATUS: &str = "/proc/1/status";
const MOVE: &str = "move user processes";
/// Maximum number of passes over all threads. Each pass moves the threads that were started during the one before.
const PASSES_MAX: usize = 16;

/// CPUs of process 1 and of the processes that have the same ones; the name is always "init".
#[derive(Debug)]
pub struct UserProcesses;

impl UserProcesses {
    pub const KIND: &str = "user-processes";
    pub const NAME: &str = "init";

    pub fn spec() -> TargetSpec {
        TargetSpec { kind: Self::KIND.into(), name: Self::NAME.into(), comparison: Comparison::CpuList }
    }
}

impl Target for UserProcesses {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        check(writer, spec)?;
        match cpus_allowed(&Root::live(), STATUS) {
            Reading::Known(cpus) => Ok(State::Value(cpus.to_list())),
            Reading::Absent => Ok(State::Absent),
            other => Err(failed(
                "read the CPUs of process 1",
                STATUS,
                other.missing_in_words().unwrap_or_default(),
            )),
        }
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        check(writer, spec)?;
        let text = spec.wanted_value(to)?;
        let cpus = cpu_list(MOVE, spec, text)?;
        move_all(&Root::live(), &cpus, scheduling::set_affinity).map_err(|source| HostError::Io {
            doing: MOVE,
            path: STATUS.to_owned(),
            source,
        })
    }
}

fn check(writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
    is_live_or(true, writer, spec)?;
    if spec.name == UserProcesses::NAME {
        return Ok(());
    }
    Err(failed("find user processes", &spec.name, "expected the name \"init\"; make a new plan"))
}

/// Moves process 1 and every thread with the same CPUs. Process 1 is moved last, so that an interrupted change does not
/// look complete.
fn move_all(root: &Root, to: &CpuSet, mut set: impl FnMut(u32, &CpuSet) -> io::Result<()>) -> io::Result<()> {
    let from = match cpus_allowed(root, STATUS) {
        Reading::Known(cpus) if cpus == *to => return Ok(()),
        Reading::Known(cpus) => cpus,
        other => return Err(io::Error::other(other.missing_in_words().unwrap_or_default())),
    };
    move_others(root, &from, to, &mut set);
    for (tid, _) in threads(root, 1).filter(|(_, cpus)| *cpus == from) {
        set(tid, to)?;
    }
    // Threads that process 1 has started since.
    move_others(root, &from, to, &mut set);
    Ok(())
}

/// Moves the threads of other processes until a pass finds none. Threads that have ended or cannot be moved are skipped.
fn move_others(
    root: &Root,
    from: &CpuSet,
    to: &CpuSet,
    set: &mut impl FnMut(u32, &CpuSet) -> io::Result<()>,
) {
    for _ in 0..PASSES_MAX {
        let mut moved = 0;
        for (tid, _) in processes(root).flat_map(|pid| threads(root, pid)).filter(|(_, cpus)| cpus == from) {
            moved += usize::from(set(tid, to).is_ok());
        }
        if moved == 0 {
            return;
        }
    }
}

fn numbers(root: &Root, directory: &str) -> impl Iterator<Item = u32> + use<> {
    let names = root.list(directory).into_known().unwrap_or_default();
    names.into_iter().filter_map(|name| name.parse().ok())
}

/// Processes other than process 1 and the kernel's threads.
fn processes(root: &Root) -> impl Iterator<Item = u32> {
    numbers(root, "/proc").filter(|pid| {
        let stat = TaskStat::read(root, &format!("/proc/{pid}/stat"));
        *pid != 1 && stat.known().is_some_and(|stat| !stat.is_kernel_thread())
    })
}

/// The threads of a process with their CPUs.
fn threads(root: &Root, pid: u32) -> impl Iterator<Item = (u32, CpuSet)> {
    numbers(root, &format!("/proc/{pid}/task")).filter_map(move |tid| {
        let cpus = cpus_allowed(root, &format!("/proc/{pid}/task/{tid}/status"));
        Some((tid, cpus.into_known()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_THREAD: u64 = 0x0020_0000;

    /// A host with these threads: process, thread, flags, CPUs.
    fn host(threads: &[(u32, u32, u64, &str)]) -> Root {
        let mut files = Vec::new();
        for (pid, tid, flags, cpus) in threads {
            let status = format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n");
            let stat = format!("{pid} (x) S 1 1 1 0 -1 {flags} 0 0 0\n");
            files.push((format!("/proc/{pid}/task/{tid}/status"), status.clone()));
            if pid == tid {
                files.push((format!("/proc/{pid}/stat"), stat));
                files.push((format!("/proc/{pid}/status"), status));
            }
        }
        Root::in_memory("a host", files.into_iter().map(|(path, text)| (path, text.into_bytes())))
    }

    /// The threads that a change moves, in order. `refused` cannot be moved.
    fn moved(root: &Root, to: &str, refused: u32) -> Vec<u32> {
        let mut moved = Vec::new();
        let set = |tid, _: &CpuSet| {
            let is_new = tid != refused && !moved.contains(&tid);
            if is_new {
                moved.push(tid);
            }
            if is_new { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        move_all(root, &CpuSet::parse_list(to).unwrap(), set).unwrap();
        moved
    }

    #[test]
    fn threads_with_the_cpus_of_process_1_move_and_it_moves_last() {
        let root = host(&[
            (1, 1, 0, "0-15"),
            (2, 2, KERNEL_THREAD, "0-15"),
            (300, 300, 0, "0-15"),
            (300, 301, 0, "9"),
            (300, 302, 0, "0-15"),
            (400, 400, 0, "0-7"),
            (500, 500, 0, "0-15"),
        ]);
        assert_eq!(moved(&root, "0,8", 500), [300, 302, 1], "pinned threads and the kernel's stay");
        assert_eq!(moved(&root, "0-15", 0), [0u32; 0], "nothing to do");
    }

    #[test]
    fn a_refusal_for_process_1_is_an_error_and_so_is_an_unreadable_one() {
        let root = host(&[(1, 1, 0, "0-3"), (9, 9, 0, "0-3")]);
        let to = CpuSet::of(0);
        let of_first = |tid, _: &CpuSet| {
            if tid == 1 {
                Err(io::ErrorKind::PermissionDenied.into())
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        };
        assert_eq!(move_all(&root, &to, of_first).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let nothing = Root::in_memory("no host", []);
        assert!(move_all(&nothing, &to, |_, _| panic!("nothing to move")).is_err());
    }

    #[test]
    fn the_state_is_that_of_process_1() {
        let writer = Writer::live().unwrap();
        let State::Value(now) = UserProcesses.read(&writer, &UserProcesses::spec()).unwrap() else {
            panic!()
        };
        assert!(!CpuSet::parse_list(&now).unwrap().is_empty());
        let other = TargetSpec { name: "x".into(), ..UserProcesses::spec() };
        assert!(UserProcesses.read(&writer, &other).unwrap_err().to_string().contains("expected the name"));
        let bad =
            UserProcesses.write(&writer, &UserProcesses::spec(), &State::Value("x".into())).unwrap_err();
        assert!(bad.to_string().contains("expected a CPU list such as 0,8"), "{bad}");
    }
}
