//! Queues of an interface (`ethtool -L`).

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::{NUMBER, WORD},
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::{Reading, snapshot::Channels};

/// Parameters: "combined", "rx", "tx".
pub static KIND: NicKind = NicKind {
    tag: "nic_channels",
    noun: " queues",
    grammar: [&WORD, &NUMBER],
    get: |nic, name| {
        let count = |now: &Channels| match name {
            "combined" => Some(now.combined),
            "rx" => Some(now.rx),
            "tx" => Some(now.tx),
            _ => None,
        };
        nic.channels.as_ref().and_then(|now| Reading::from_option(count(now).map(|count| count.to_string())))
    },
    put: |nic, name, value| {
        let (Reading::Known(now), Ok(count)) = (&mut nic.channels, value.parse()) else { return };
        match name {
            "combined" => now.combined = count,
            "rx" => now.rx = count,
            "tx" => now.tx = count,
            _ => {}
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-channels",
        option: "-L",
        expected: "rx, tx, other or combined",
        wire: Wire::Fields {
            get: 17,
            set: 18,
            ioctl: 0x3C,
            fields: &[
                Field::number("rx", 6, 5),
                Field::number("tx", 7, 6),
                Field::number("other", 8, 7),
                Field::number("combined", 9, 8),
            ],
        },
    }),
    part: Part::Queues,
    tuned: "channels",
};
