//! Ring sizes of an interface (`ethtool -G`).

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::{NUMBER, WORD},
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::Reading;

/// Parameters: "rx", "tx".
pub static KIND: NicKind = NicKind {
    tag: "nic_rings",
    noun: " ring",
    grammar: [&WORD, &NUMBER],
    get: |nic, name| {
        nic.rings.as_ref().and_then(|now| match name {
            "rx" => Reading::Known(now.rx.to_string()),
            "tx" => Reading::Known(now.tx.to_string()),
            _ => Reading::Absent,
        })
    },
    put: |nic, name, value| {
        let (Reading::Known(now), Ok(size)) = (&mut nic.rings, value.parse()) else { return };
        match name {
            "rx" => now.rx = size,
            "tx" => now.tx = size,
            _ => {}
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-rings",
        option: "-G",
        expected: "rx, rx-mini, rx-jumbo or tx",
        wire: Wire::Fields {
            get: 15,
            set: 16,
            ioctl: 0x10,
            fields: &[
                Field::number("rx", 6, 5),
                Field::number("rx-mini", 7, 6),
                Field::number("rx-jumbo", 8, 7),
                Field::number("tx", 9, 8),
            ],
        },
    }),
    part: Part::RunTime,
    tuned: "ring",
};
