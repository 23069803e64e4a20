//! The CPUs of a kernel thread, as a CPU list.

use crate::change::{
    Kind, KindFacts, Lasting, Mechanism,
    grammar::{CPU_LIST, HANDLER},
    kind::{list, put_list},
};
use lowlat_host::{HostSnapshot, Reading, snapshot::KernelThread};

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
