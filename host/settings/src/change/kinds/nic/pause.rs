//! Pause frames of an interface (`ethtool -A`).

use super::{By, NicKind, on_off};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::Reading;

/// Parameters: "rx", "tx", "autoneg".
pub static KIND: NicKind = NicKind {
    tag: "nic_pause",
    noun: " pause",
    grammar: [&WORD, &WORD],
    get: |nic, name| {
        nic.pause.as_ref().and_then(|now| match name {
            "autoneg" => Reading::Known(on_off(now.autoneg)),
            "rx" => Reading::Known(on_off(now.rx)),
            "tx" => Reading::Known(on_off(now.tx)),
            _ => Reading::Absent,
        })
    },
    put: |nic, name, value| {
        let Reading::Known(now) = &mut nic.pause else { return };
        match name {
            "autoneg" => now.autoneg = value == "on",
            "rx" => now.rx = value == "on",
            "tx" => now.tx = value == "on",
            _ => {}
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-pause",
        option: "-A",
        expected: "autoneg, rx or tx",
        wire: Wire::Fields {
            get: 21,
            set: 22,
            ioctl: 0x12,
            fields: &[Field::switch("autoneg", 2, 1), Field::switch("rx", 3, 2), Field::switch("tx", 4, 3)],
        },
    }),
    part: Part::RunTime,
    tuned: "pause",
};
