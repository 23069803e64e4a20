//! The default affinity of new interrupts, as a CPU list.

use crate::change::{
    Kind, KindFacts, Mechanism, Rival,
    grammar::CPU_LIST,
    kind::{list, put_list, watch},
};
use lowlat_host::{HostSnapshot, Reading};

const PATH: &str = "/proc/irq/default_smp_affinity";

pub(super) struct DefaultIrqAffinity;

impl Kind for DefaultIrqAffinity {
    fn facts(&self) -> KindFacts<'_> {
        let mechanism = Mechanism::Mask { path: PATH.to_owned() };
        KindFacts {
            rivals: vec![Rival::Interrupts],
            how_to_find: watch(PATH),
            ..KindFacts::of("default IRQ affinity", mechanism, &[], &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        list(&host.interrupts.default_affinity)
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        put_list(&mut host.interrupts.default_affinity, value);
    }
}
