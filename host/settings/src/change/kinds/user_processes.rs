//! The CPUs of process 1 and of the running processes that have the same ones, as a CPU list. A process inherits its
//! parent's, so those of process 1 are the default of all.

use crate::change::{
    Kind, KindFacts, Mechanism, Rival,
    grammar::CPU_LIST,
    kind::{list, put_list},
};
use lowlat_host::{HostSnapshot, Reading};

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
