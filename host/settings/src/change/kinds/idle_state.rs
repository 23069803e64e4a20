//! An idle state of some CPUs: "enabled" or "disabled".

use crate::change::{
    Kind, KindFacts, Mechanism,
    grammar::{HANDLER, WORD},
};
use lowlat_host::{CpuSet, HostSnapshot};

pub(super) struct IdleStateSwitch<'a> {
    pub(super) name: &'a str,
    pub(super) cpus: &'a CpuSet,
}

impl Kind for IdleStateSwitch<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let mechanism = Mechanism::IdleState { name: self.name, cpus: self.cpus };
        let name = format!("{} on {:#}", self.name, self.cpus);
        KindFacts::of(name, mechanism, &[(&HANDLER, self.name)], &WORD)
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
