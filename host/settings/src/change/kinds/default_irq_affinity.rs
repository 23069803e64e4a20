//! The default affinity of new interrupts, as a CPU list.

use crate::change::{
    Kind, Mechanism, Rival,
    grammar::{CPU_LIST, misfit},
    kind::{list, put_list, watch},
};
use lowlat_host::{HostSnapshot, Reading};

const PATH: &str = "/proc/irq/default_smp_affinity";

pub(super) struct DefaultIrqAffinity;

impl Kind for DefaultIrqAffinity {
    fn name(&self) -> String {
        "default IRQ affinity".to_owned()
    }

    fn misfit(&self, after: &str) -> Option<String> {
        misfit(&[(&CPU_LIST, after)])
    }

    fn mechanism(&self) -> Mechanism<'_> {
        Mechanism::Mask { path: PATH.to_owned() }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        list(&host.interrupts.default_affinity)
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        put_list(&mut host.interrupts.default_affinity, value);
    }

    fn rivals(&self) -> Vec<Rival> {
        vec![Rival::Interrupts]
    }

    fn how_to_find(&self) -> String {
        watch(PATH)
    }
}
