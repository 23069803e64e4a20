//! Values of one NAPI instance (kernel Documentation/networking/napi.rst), which netdev-genl sets since 6.13. Before it,
//! files of the interface set all its instances.

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::{NAPI, WORD},
    kind::{Ethtool, Wire},
};
use lowlat_host::{Reading, snapshot::NapiField};

/// By the instance's name, because its number changes with every boot: "rx-0/gro-flush-timeout".
pub static KIND: NicKind = NicKind {
    tag: "nic_napi",
    noun: "",
    grammar: [&NAPI, &WORD],
    get: |nic, name| {
        nic.napis.as_ref().and_then(|napis| {
            let found = NapiField::split(name)
                .and_then(|(name, field)| napis.iter().find(|napi| napi.name == name)?.value(field));
            Reading::from_option(found)
        })
    },
    put: |nic, name, value| {
        let (Reading::Known(napis), Some((name, field))) = (&mut nic.napis, NapiField::split(name)) else {
            return;
        };
        for napi in napis.iter_mut().filter(|napi| napi.name == name) {
            napi.set(field, value);
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-napi",
        option: "",
        expected: "a NAPI instance and a value, such as rx-0/gro-flush-timeout",
        wire: Wire::Napi,
    }),
    part: Part::RunTime,
    tuned: "",
};
