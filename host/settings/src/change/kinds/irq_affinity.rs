//! Affinities of interrupts, as CPU lists.

use crate::change::{
    Kind, KindFacts, Lasting, Mechanism, Rival,
    grammar::{CPU_LIST, HANDLER},
    kind::{list, put_list, watch},
};
use lowlat_host::{HostSnapshot, Reading};

/// The affinity of an interrupt.
pub(super) struct IrqAffinity<'a> {
    pub(super) irq: u32,
    pub(super) actions: &'a [String],
}

impl Kind for IrqAffinity<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let names: Vec<_> = self.actions.iter().map(|name| (&HANDLER, name.as_str())).collect();
        let mechanism = Mechanism::Interrupt { number: self.irq, actions: self.actions };
        let name = format!("IRQ {} {}", self.irq, self.actions.join("+"));
        KindFacts {
            how_to_find: watch(&format!("/proc/irq/{}/smp_affinity", self.irq)),
            ..KindFacts::of(name, mechanism, &names, &CPU_LIST)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let mut irqs = host.interrupts.irqs.iter();
        let irq = irqs.find(|irq| irq.number == self.irq && irq.actions == self.actions);
        irq.map_or(Reading::Absent, |irq| list(&irq.affinity))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let irqs = host.interrupts.irqs.iter_mut();
        for irq in irqs.filter(|irq| irq.number == self.irq && irq.actions == self.actions) {
            put_list(&mut irq.affinity, value);
        }
    }

    /// Several interrupts can share a name; then the number distinguishes them.
    fn lasting(&self) -> Option<Lasting> {
        Some(Lasting {
            name: self.actions.join(","),
            is_unique: self.actions.iter().any(|action| action.contains(|c: char| c.is_ascii_digit())),
            is_on: |host, name| host.interrupts.irqs.iter().any(|irq| irq.actions.join(",") == name),
        })
    }
}

const PATH: &str = "/proc/irq/default_smp_affinity";

/// The default affinity of new interrupts.
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
