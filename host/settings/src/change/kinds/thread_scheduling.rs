//! Policy and priority of a kernel thread: "SCHED_FIFO 2".

use super::thread_affinity::{HOW_TO_FIND, thread};
use crate::change::{
    Kind, Lasting, Mechanism,
    grammar::{HANDLER, POLICY, misfit},
    kthread::scheduling,
};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct ThreadScheduling<'a> {
    pub(super) comm: &'a str,
    pub(super) pid: u32,
}

impl Kind for ThreadScheduling<'_> {
    fn name(&self) -> String {
        self.comm.to_owned()
    }

    fn title(&self) -> String {
        format!("{} scheduling", self.comm)
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&HANDLER, self.comm), (&POLICY, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::ThreadScheduling { comm: self.comm, pid: self.pid }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let thread = thread(host, self.pid, self.comm);
        Reading::from_option(thread.map(|thread| scheduling(thread.policy, thread.rt_priority)))
    }

    fn lasting(&self) -> Option<Lasting> {
        Some(Lasting::thread(self.comm))
    }

    fn how_to_find(&self) -> String {
        HOW_TO_FIND.to_owned()
    }
}
