//! Policy and priority of a kernel thread: "SCHED_FIFO 2".

use super::thread_affinity::{HOW_TO_FIND, thread};
use crate::change::{
    Kind, KindFacts, Lasting, Mechanism,
    grammar::{HANDLER, POLICY},
    kthread::scheduling,
};
use lowlat_host::{HostSnapshot, Reading};

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
