//! The CPUs of process 1 and of the running processes that have the same ones, as a CPU list. A process inherits its
//! parent's, so those of process 1 are the default of all.

use crate::change::{
    Kind, Mechanism, Rival,
    grammar::{CPU_LIST, misfit},
    kind::{list, put_list},
};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct UserProcessesKind;

impl Kind for UserProcessesKind {
    fn name(&self) -> String {
        "CPUs of user processes".to_owned()
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&CPU_LIST, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::UserProcesses
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        list(&host.tasks.first_process_cpus)
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        put_list(&mut host.tasks.first_process_cpus, value);
    }

    fn rivals(&self) -> Vec<Rival> {
        vec![Rival::Processes]
    }

    fn how_to_find(&self) -> String {
        "to find the cause: `taskset -cp 1`, and `grep -r CPUAffinity= /etc/systemd/system.conf /etc/systemd/system.conf.d`"
            .to_owned()
    }
}
