//! An idle state of some CPUs: "enabled" or "disabled".

use crate::change::{
    Kind, Mechanism,
    grammar::{HANDLER, WORD, misfit},
};
use lowlat_host::{CpuSet, HostSnapshot};

pub(super) struct IdleStateSwitch<'a> {
    pub(super) name: &'a str,
    pub(super) cpus: &'a CpuSet,
}

impl Kind for IdleStateSwitch<'_> {
    fn name(&self) -> String {
        format!("{} on {:#}", self.name, self.cpus)
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&HANDLER, self.name), (&WORD, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::IdleState { name: self.name, cpus: self.cpus }
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        for state in host.cpu.idle_states.iter_mut().filter(|state| state.name == self.name) {
            state.cpus_enabled = match value {
                "enabled" => state.cpus_enabled.union(self.cpus),
                _ => state.cpus_enabled.difference(self.cpus),
            };
        }
    }
}
