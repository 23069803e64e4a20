//! Energy-Efficient Ethernet of an interface (`ethtool --set-eee`).

use super::{By, NicKind, on_off};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::Reading;

/// The only parameter is "eee".
pub static KIND: NicKind = NicKind {
    tag: "nic_eee",
    noun: "",
    grammar: [&WORD, &WORD],
    get: |nic, name| {
        nic.eee.as_ref().and_then(|now| Reading::from_option((name == "eee").then(|| on_off(now.eee))))
    },
    put: |nic, name, value| {
        if let (Reading::Known(now), "eee") = (&mut nic.eee, name) {
            now.eee = value == "on";
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-eee",
        option: "--set-eee",
        expected: "eee",
        wire: Wire::Fields { get: 23, set: 24, ioctl: 0x44, fields: &[Field::switch("eee", 5, 5)] },
    }),
    part: Part::RunTime,
    tuned: "",
};
