//! CPUs and scheduling of threads and processes.

use crate::change::{
    Kind, KindFacts, Lasting, Mechanism, Rival,
    grammar::{CPU_LIST, HANDLER, PATH, POLICY},
    kind::{list, put_list},
    kthread::scheduling,
};
use lowlat_host::{HostSnapshot, Reading, snapshot::KernelThread};

/// The CPUs of a kernel thread, as a CPU list.
pub(super) struct ThreadAffinity<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: u32,
}

impl Kind for ThreadAffinity<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let mechanism = Mechanism::ThreadAffinity { comm: self.comm, pid: self.pid };
        let name = format!("CPUs of {}", self.comm);
        KindFacts {
            owner: self.comm.to_owned(),
            how_to_find: HOW_TO_FIND.to_owned(),
            ..KindFacts::of(name, mechanism, &[(&HANDLER, self.comm)], &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        thread(host, self.pid, self.comm).map_or(Reading::Absent, |thread| list(&thread.cpus_allowed))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let threads = host.tasks.kernel_threads.iter_mut();
        for thread in threads.filter(|thread| thread.comm == self.comm && thread.pid == self.pid) {
            put_list(&mut thread.cpus_allowed, value);
        }
    }

    /// Every thread of the name, because process IDs change with each boot.
    fn revert(&self, host: &mut HostSnapshot, before: &str, after: &str) {
        for thread in host.tasks.kernel_threads.iter_mut().filter(|thread| thread.comm == self.comm) {
            if thread.cpus_allowed.known().is_some_and(|now| now.to_list() == after) {
                put_list(&mut thread.cpus_allowed, before);
            }
        }
    }

    fn lasting(&self) -> Option<Lasting> {
        Some(Lasting::thread(self.comm))
    }
}

/// The kernel thread with this process ID, if it still has the name.
pub(super) fn thread<'h>(host: &'h HostSnapshot, pid: u32, comm: &str) -> Option<&'h KernelThread> {
    host.tasks.kernel_threads.iter().find(|thread| thread.pid == pid && thread.comm == comm)
}

pub(super) const HOW_TO_FIND: &str = "to find the cause: `auditctl -a always,exit -S \
     sched_setaffinity,sched_setscheduler -k lowlat`, then `ausearch -k lowlat`";

impl Lasting {
    /// The name of a kernel thread.
    pub(super) fn thread(comm: &str) -> Self {
        let is_on: fn(&HostSnapshot, &str) -> bool =
            |host, name| host.tasks.kernel_threads.iter().any(|thread| thread.comm == name);
        Self { name: comm.to_owned(), is_unique: true, is_on }
    }
}

/// Policy and priority of a kernel thread: "SCHED_FIFO 2".
pub(super) struct ThreadScheduling<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: u32,
}

impl Kind for ThreadScheduling<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let mechanism = Mechanism::ThreadScheduling { comm: self.comm, pid: self.pid };
        KindFacts {
            title: format!("{} scheduling", self.comm),
            how_to_find: HOW_TO_FIND.to_owned(),
            ..KindFacts::of(self.comm, mechanism, &[(&HANDLER, self.comm)], &POLICY)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let thread = thread(host, self.pid, self.comm);
        Reading::from_option(thread.map(|thread| scheduling(thread.policy, thread.rt_priority)))
    }

    fn lasting(&self) -> Option<Lasting> {
        Some(Lasting::thread(self.comm))
    }
}

/// The CPUs of process 1 and of the running processes that have the same ones, as a CPU list. A process inherits its
/// parent's, so those of process 1 are the default of all.
pub(super) struct UserProcessesKind;

impl Kind for UserProcessesKind {
    fn facts(&self) -> KindFacts<'_> {
        KindFacts {
            rivals: vec![Rival::Processes],
            how_to_find: "to find the cause: `taskset -cp 1`, and `grep -r CPUAffinity= /etc/systemd/system.conf /etc/systemd/system.conf.d`"
                .to_owned(),
            ..KindFacts::of("CPUs of user processes", Mechanism::UserProcesses, &[], &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        list(&host.tasks.first_process_cpus)
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        put_list(&mut host.tasks.first_process_cpus, value);
    }
}

/// The CPUs of the workers of a workqueue, or of all unbound work, as a CPU list.
pub(super) struct WorkqueueKind<'a> {
    pub(super) name: Option<&'a str>,
}

impl Kind for WorkqueueKind<'_> {
    fn facts(&self) -> KindFacts<'_> {
        const QUEUES: &str = "/sys/devices/virtual/workqueue";
        let path = self.name.map_or(format!("{QUEUES}/cpumask"), |name| format!("{QUEUES}/{name}/cpumask"));
        let name = self.name.unwrap_or("all unbound work");
        // The kernel exposes its queues under two paths.
        let other = path.replacen(QUEUES, "/sys/bus/workqueue/devices", 1);
        KindFacts {
            title: self.name.map_or(name.to_owned(), |name| format!("workqueue {name}")),
            rivals: vec![Rival::Path(path.clone()), Rival::Path(other)],
            ..KindFacts::of(name, Mechanism::Mask { path: path.clone() }, &[(&PATH, &path)], &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let Some(name) = self.name else { return list(&host.tasks.workqueue_cpus) };
        let queue = host.tasks.workqueues.iter().find(|queue| queue.name == name);
        queue.map_or(Reading::Absent, |queue| list(&queue.cpus))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let Some(name) = self.name else { return put_list(&mut host.tasks.workqueue_cpus, value) };
        for queue in host.tasks.workqueues.iter_mut().filter(|queue| queue.name == name) {
            put_list(&mut queue.cpus, value);
        }
    }
}
