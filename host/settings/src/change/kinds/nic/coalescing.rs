//! Interrupt coalescing of an interface (`ethtool -C`).

use super::{By, NicKind, on_off};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::{Reading, snapshot::Coalescing};

/// Parameters such as "rx-usecs" and "adaptive-rx".
pub static KIND: NicKind = NicKind {
    tag: "nic_coalescing",
    noun: "",
    grammar: [&WORD, &WORD],
    get: |nic, name| {
        let value = |now: &Coalescing| {
            let number = |number: Option<u32>| number.map(|number| number.to_string());
            match name {
                "rx-usecs" => number(now.rx_usecs),
                "rx-frames" => number(now.rx_frames),
                "rx-usecs-irq" => number(now.rx_usecs_irq),
                "tx-usecs" => number(now.tx_usecs),
                "tx-frames" => number(now.tx_frames),
                "adaptive-rx" => now.adaptive_rx.map(on_off),
                "adaptive-tx" => now.adaptive_tx.map(on_off),
                _ => None,
            }
        };
        nic.coalescing.as_ref().and_then(|now| Reading::from_option(value(now)))
    },
    put: |nic, name, value| {
        let Reading::Known(now) = &mut nic.coalescing else { return };
        match name {
            "rx-usecs" => now.rx_usecs = value.parse().ok(),
            "rx-frames" => now.rx_frames = value.parse().ok(),
            "rx-usecs-irq" => now.rx_usecs_irq = value.parse().ok(),
            "tx-usecs" => now.tx_usecs = value.parse().ok(),
            "tx-frames" => now.tx_frames = value.parse().ok(),
            "adaptive-rx" => now.adaptive_rx = Some(value == "on"),
            "adaptive-tx" => now.adaptive_tx = Some(value == "on"),
            _ => {}
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-coalescing",
        option: "-C",
        expected: "a setting of ethtool -C such as rx-usecs or adaptive-rx",
        wire: Wire::Fields {
            get: 19,
            set: 20,
            ioctl: 0x0E,
            fields: &[
                Field::number("rx-usecs", 2, 1),
                Field::number("rx-frames", 3, 2),
                Field::number("rx-usecs-irq", 4, 3),
                Field::number("rx-frames-irq", 5, 4),
                Field::number("tx-usecs", 6, 5),
                Field::number("tx-frames", 7, 6),
                Field::number("tx-usecs-irq", 8, 7),
                Field::number("tx-frames-irq", 9, 8),
                Field::switch("adaptive-rx", 11, 10),
                Field::switch("adaptive-tx", 12, 11),
            ],
        },
    }),
    part: Part::RunTime,
    tuned: "coalesce",
};
