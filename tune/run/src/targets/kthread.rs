//! Affinity and scheduling of kernel threads. Neither survives a reboot.
//! A thread is identified by its number and its name, because numbers are reused. A thread that has ended is
//! absent, as is one whose number belongs to another.

use super::{cpu_list, failed, is_live_or, refused};
use lowlat_host::CpuSet;
use lowlat_host_run::{
    scheduling::{self, Scheduling},
    task_stat::TaskStat,
};
use lowlat_undo::{Comparison, HostError, State, Target, TargetSpec, Writer};
use std::io;

/// Flag of threads that the kernel does not allow moving (include/linux/sched.h).
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;
const MOVE: &str = "move the thread";
const SCHEDULE: &str = "schedule the thread";

/// The changed attribute of a kernel thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelThreads {
    /// CPUs on which a thread may run, as a CPU list.
    Affinity,
    /// Policy, priority and nice value of a thread, as [`Scheduling`] has them.
    Scheduling,
}

impl KernelThreads {
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Affinity => "kthread-affinity",
            Self::Scheduling => "kthread-scheduling",
        }
    }

    /// The thread as a target, with its comparison.
    pub fn spec(self, pid: u32, comm: &str) -> TargetSpec {
        let comparison = match self {
            Self::Affinity => Comparison::CpuList,
            Self::Scheduling => Comparison::Leading,
        };
        TargetSpec { kind: self.kind().to_owned(), name: format!("{pid} {comm}"), comparison }
    }
}

impl Target for KernelThreads {
    fn kind(&self) -> &'static str {
        (*self).kind()
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        let thread = Thread::of(writer, spec)?;
        thread.read(|| match self {
            // sched_getaffinity omits offline CPUs, which a rollback must restore.
            Self::Affinity => thread.allowed(),
            Self::Scheduling => scheduling::scheduling(thread.pid).map(|found| found.to_string()),
        })
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let thread = Thread::of(writer, spec)?;
        let text = spec.wanted_value(to)?;
        match self {
            Self::Affinity => {
                let cpus = cpu_list(MOVE, spec, text)?;
                thread.write(MOVE, || {
                    scheduling::set_affinity(thread.pid, &cpus)
                        .map_err(|error| thread.why_not_moved(&cpus, error))
                })
            }
            Self::Scheduling => {
                let wanted: Scheduling = text.parse().map_err(|error| failed(SCHEDULE, &spec.name, error))?;
                thread.write(SCHEDULE, || {
                    scheduling::set_scheduling(thread.pid, &wanted)
                        .map_err(|error| thread.why_not_scheduled(&wanted, error))
                })
            }
        }
    }
}

/// A thread by number and name.
#[derive(Debug)]
struct Thread<'a> {
    writer: &'a Writer,
    spec: &'a TargetSpec,
    pid: u32,
    comm: &'a str,
}

impl<'a> Thread<'a> {
    fn of(writer: &'a Writer, spec: &'a TargetSpec) -> Result<Self, HostError> {
        is_live_or(true, writer, spec)?;
        let parts = spec.name.split_once(' ').and_then(|(pid, comm)| Some((pid.parse().ok()?, comm)));
        if let Some((pid, comm)) = parts.filter(|(pid, comm)| *pid > 0 && !comm.is_empty()) {
            return Ok(Self { writer, spec, pid, comm });
        }
        let why = "expected number and name of a thread such as \"78 kswapd0\"; make a new plan";
        Err(failed("find the thread", &spec.name, why))
    }

    /// The content of a file of the thread; none if the thread has ended.
    fn file(&self, name: &str) -> Result<Option<String>, HostError> {
        match self.writer.read_value(&format!("/proc/{}/{name}", self.pid)) {
            Ok(state) => Ok(state.into_value()),
            // It ended between opening and reading.
            Err(HostError::Io { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// True if the number still belongs to this thread.
    fn is_there(&self) -> Result<bool, HostError> {
        Ok(self.file("comm")?.is_some_and(|comm| comm.trim_end_matches('\n') == self.comm))
    }

    fn read(&self, read: impl FnOnce() -> io::Result<String>) -> Result<State, HostError> {
        if !self.is_there()? {
            return Ok(State::Absent);
        }
        let found = read();
        // Checked again, because the number may have a new owner.
        if !self.is_there()? {
            return Ok(State::Absent);
        }
        let io =
            |source| HostError::Io { doing: "read the thread's state", path: self.spec.name.clone(), source };
        found.map(State::Value).map_err(io)
    }

    fn write(
        &self,
        doing: &'static str,
        write: impl FnOnce() -> Result<(), HostError>,
    ) -> Result<(), HostError> {
        let gone = "no thread with this number has this name; make a new plan";
        if !self.is_there()? {
            return Err(refused(doing, &self.spec.name, gone));
        }
        let written = write();
        if !self.is_there()? {
            return Err(refused(doing, &self.spec.name, gone));
        }
        written
    }

    fn allowed(&self) -> io::Result<String> {
        let text = self.file("status").map_err(io::Error::other)?.unwrap_or_default();
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let expected = || {
            let raw: String = text.chars().take(80).collect();
            io::Error::other(format!(
                "found {raw:?}, expected a line \"Cpus_allowed_list: 0-7\" in its status file"
            ))
        };
        list.map(|list| list.trim().to_owned()).ok_or_else(expected)
    }

    fn why_not_moved(&self, cpus: &CpuSet, source: io::Error) -> HostError {
        let (doing, path) = (MOVE, self.spec.name.clone());
        if source.raw_os_error() != Some(libc::EINVAL) {
            return HostError::Io { doing, path, source };
        }
        let stat = self.file("stat").ok().flatten();
        let flags = stat.and_then(|line| TaskStat::parse(&line)).map_or(0, |stat| stat.flags);
        let why = if flags & PF_NO_SETAFFINITY != 0 {
            "the kernel has bound this thread to its CPU and does not allow moving it; leave this step out"
                .to_owned()
        } else {
            format!(
                "none of the CPUs {cpus} is online and allowed for this thread; bring one of them online, or make a \
                 new plan"
            )
        };
        refused(doing, &path, format!("{source}: {why}"))
    }

    fn why_not_scheduled(&self, wanted: &Scheduling, source: io::Error) -> HostError {
        let (doing, path) = (SCHEDULE, self.spec.name.clone());
        let why = match source.raw_os_error() {
            Some(libc::EINVAL) => format!("this kernel does not support {wanted}; leave this step out"),
            Some(libc::EBUSY) => {
                format!(
                    "the CPUs of this thread have no capacity left for {wanted}; end other SCHED_DEADLINE tasks"
                )
            }
            _ => return HostError::Io { doing, path, source },
        };
        refused(doing, &path, format!("{source}: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_undo::{OnFailure, PrivateDirectory, UndoLog, UndoStep};
    use std::process::{Child, Command};

    /// A sleeping child process that ends with the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Self {
            let sleeper = Self(Command::new("sleep").arg("600").spawn().unwrap());
            // It has the test's name until it has executed the program.
            while !std::fs::read_to_string(format!("/proc/{}/comm", sleeper.pid()))
                .unwrap()
                .starts_with("sleep")
            {
                std::thread::yield_now();
            }
            sleeper
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn log(dir: &tempfile::TempDir) -> UndoLog {
        let log = UndoLog::open(
            PrivateDirectory::create(dir.path(), &[]).unwrap(),
            Writer::live().unwrap(),
            |_| true,
        )
        .unwrap();
        log.with_target(Box::new(KernelThreads::Affinity)).with_target(Box::new(KernelThreads::Scheduling))
    }

    fn step(log: &UndoLog, target: TargetSpec, new: &str) -> UndoStep {
        let old = log.present(&target).unwrap();
        UndoStep { id: target.kind.clone(), target, old, new: State::Value(new.to_owned()) }
    }

    #[test]
    fn a_task_is_moved_and_scheduled_and_both_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, sleeper) = (log(&dir), Sleeper::new());
        let affinity = KernelThreads::Affinity.spec(sleeper.pid(), "sleep");
        let policy = KernelThreads::Scheduling.spec(sleeper.pid(), "sleep");
        let batch = "SCHED_BATCH nice 3".parse().unwrap();
        scheduling::set_scheduling(sleeper.pid(), &batch).unwrap();
        let State::Value(cpus) = log.present(&affinity).unwrap() else { panic!() };
        let first = CpuSet::parse_list(&cpus).unwrap().iter().next().unwrap().to_string();
        let steps = [step(&log, affinity.clone(), &first), step(&log, policy.clone(), "SCHED_IDLE")];
        log.apply("p", &steps, OnFailure::RollBack).unwrap();
        assert_eq!(log.present(&affinity).unwrap(), State::Value(first));
        assert_eq!(log.present(&policy).unwrap(), State::Value("SCHED_IDLE nice 3".into()));
        assert!(log.rollback_where(|_| true).is_complete());
        assert_eq!(log.present(&affinity).unwrap(), State::Value(cpus));
        assert_eq!(log.present(&policy).unwrap(), State::Value("SCHED_BATCH nice 3".into()));
    }

    #[test]
    fn a_number_that_is_anothers_is_not_touched() {
        let writer = Writer::live().unwrap();
        let sleeper = Sleeper::new();
        for spec in [
            KernelThreads::Affinity.spec(sleeper.pid(), "kswapd0"),
            KernelThreads::Affinity.spec(4_194_304, "kswapd0"),
        ] {
            assert_eq!(KernelThreads::Affinity.read(&writer, &spec).unwrap(), State::Absent);
            let error = KernelThreads::Affinity
                .write(&writer, &spec, &State::Value("0".into()))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("cannot move the thread: no thread with this number has this name"),
                "{error}"
            );
        }
        let (spec, ended) = (KernelThreads::Scheduling.spec(sleeper.pid(), "sleep"), sleeper);
        drop(ended);
        assert_eq!(KernelThreads::Scheduling.read(&writer, &spec).unwrap(), State::Absent);
    }

    #[test]
    fn bad_names_and_values_are_told() {
        let writer = Writer::live().unwrap();
        for name in ["", "kswapd0", "0 kswapd0", "-1 x", "12", "12 ", "4294967296 x"] {
            let spec = TargetSpec { name: name.into(), ..KernelThreads::Affinity.spec(1, "x") };
            let error = KernelThreads::Affinity.read(&writer, &spec).unwrap_err().to_string();
            assert!(error.contains("expected number and name of a thread"), "{error}");
        }
        let sleeper = Sleeper::new();
        let (affinity, policy) = (
            KernelThreads::Affinity.spec(sleeper.pid(), "sleep"),
            KernelThreads::Scheduling.spec(sleeper.pid(), "sleep"),
        );
        let write = |text: &str| {
            KernelThreads::Affinity
                .write(&writer, &affinity, &State::Value(text.into()))
                .unwrap_err()
                .to_string()
        };
        assert!(write("x").contains("expected a CPU list such as 0,8"));
        let error = write("8191");
        assert!(error.contains("none of the CPUs 8191 is online and allowed for this thread"), "{error}");
        let to = State::Value("SCHED_FIFO 0".into());
        let error = KernelThreads::Scheduling.write(&writer, &policy, &to).unwrap_err().to_string();
        assert!(error.contains("found \"SCHED_FIFO 0\", expected a policy such as"), "{error}");
        assert!(matches!(
            KernelThreads::Affinity.write(&writer, &affinity, &State::Absent),
            Err(HostError::Unfit(_))
        ));
        let dir = tempfile::tempdir().unwrap();
        let other = Writer::below(dir.path()).unwrap();
        let error = KernelThreads::Scheduling.read(&other, &policy).unwrap_err().to_string();
        assert!(error.contains("belongs to the running host"), "{error}");
    }
}
