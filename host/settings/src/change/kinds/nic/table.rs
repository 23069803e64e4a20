//! The kinds of changes to an interface.

use super::{By, NicKind, on_off, put_mask, text_of_mask};
use crate::change::{
    Part,
    grammar::{CPU_LIST, NAPI as NAPI_VALUE, NUMBER, QUEUE, WORD},
    kind::{Ethtool, Field, Wire},
};
use lowlat_host::{
    Reading,
    snapshot::{Channels, Coalescing, NapiField},
};

/// Queues of an interface (`ethtool -L`).
///
/// Parameters: "combined", "rx", "tx".
pub static CHANNELS: NicKind = NicKind {
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

/// Interrupt coalescing of an interface (`ethtool -C`).
///
/// Parameters such as "rx-usecs" and "adaptive-rx".
pub static COALESCING: NicKind = NicKind {
    tag: "nic_coalescing",
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
    tuned: "coalesce",
    ..NicKind::BLANK
};

/// Energy-Efficient Ethernet of an interface (`ethtool --set-eee`).
///
/// The only parameter is "eee".
pub static EEE: NicKind = NicKind {
    tag: "nic_eee",
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
    ..NicKind::BLANK
};

/// Features of an interface (`ethtool -K`).
///
/// By the kernel's name: "rx-lro".
pub static FEATURE: NicKind = NicKind {
    tag: "nic_feature",
    get: |nic, name| {
        nic.offloads.as_ref().and_then(|all| Reading::from_option(all.get(name).copied().map(on_off)))
    },
    put: |nic, name, value| {
        if let Reading::Known(all) = &mut nic.offloads {
            all.insert(name.to_owned(), value == "on");
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-feature",
        option: "-K",
        expected: "a feature with the kernel's name such as rx-lro",
        wire: Wire::Features,
    }),
    tuned: "features",
    ..NicKind::BLANK
};

/// Forward error correction of an interface (`ethtool --set-fec`).
///
/// "encoding", as words with commas between: "auto,rs".
pub static FEC: NicKind = NicKind {
    tag: "nic_fec",
    noun: " of FEC",
    get: |nic, name| {
        let words = nic.fec.as_ref().map(|now| now.configured.join(","));
        words.and_then(|words| {
            Reading::from_option(Some(words).filter(|words| name == "encoding" && !words.is_empty()))
        })
    },
    put: |nic, name, value| {
        if let (Reading::Known(now), "encoding") = (&mut nic.fec, name) {
            now.configured = value.split(',').map(str::to_owned).collect();
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-fec",
        option: "--set-fec",
        expected: "encoding",
        wire: Wire::Fec,
    }),
    ..NicKind::BLANK
};

/// Values of one NAPI instance (kernel Documentation/networking/napi.rst), which netdev-genl sets since 6.13. Before it,
/// files of the interface set all its instances.
///
/// By the instance's name, because its number changes with every boot: "rx-0/gro-flush-timeout".
pub static NAPI: NicKind = NicKind {
    tag: "nic_napi",
    grammar: [&NAPI_VALUE, &WORD],
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
    ..NicKind::BLANK
};

/// Queues of an interface that Onload drives over AF_XDP.
///
/// The only parameter is "queues"; 0 if the interface is not registered.
pub static ONLOAD: NicKind = NicKind {
    tag: "nic_onload",
    noun: " of Onload",
    grammar: [&WORD, &NUMBER],
    get: |nic, _| nic.onload_queues.as_ref().map(ToString::to_string),
    put: |nic, _, value| {
        if let (Reading::Known(now), Ok(queues)) = (&mut nic.onload_queues, value.parse()) {
            *now = queues;
        }
    },
    by: By::Ethtool(Ethtool { undo_kind: "nic-onload", option: "", expected: "queues", wire: Wire::Onload }),
    ..NicKind::BLANK
};

/// Pause frames of an interface (`ethtool -A`).
///
/// Parameters: "rx", "tx", "autoneg".
pub static PAUSE: NicKind = NicKind {
    tag: "nic_pause",
    noun: " pause",
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
    tuned: "pause",
    ..NicKind::BLANK
};

/// Ring sizes of an interface (`ethtool -G`).
///
/// Parameters: "rx", "tx".
pub static RINGS: NicKind = NicKind {
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
    tuned: "ring",
    ..NicKind::BLANK
};

/// The indirection table of receive side scaling (`ethtool -X`).
///
/// "equal": the number of queues over which the table spreads flows equally, or all its entries with commas between.
pub static RSS: NicKind = NicKind {
    tag: "nic_rss",
    noun: " RSS queues",
    get: |nic, name| {
        let value = nic.rss_indirection.as_ref().map(|table| match equal_queues(table) {
            Some(queues) => queues.to_string(),
            None => table.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        });
        value.and_then(|value| Reading::from_option((name == "equal").then_some(value)))
    },
    put: |nic, name, value| {
        let (Reading::Known(table), "equal") = (&mut nic.rss_indirection, name) else { return };
        match value.parse() {
            Ok(queues) => *table = (0..queues).cycle().take(table.len()).collect(),
            Err(_) => *table = value.split(',').filter_map(|entry| entry.parse().ok()).collect(),
        }
    },
    by: By::Ethtool(Ethtool {
        undo_kind: "nic-rss",
        option: "-X",
        expected: "equal",
        wire: Wire::Indirection,
    }),
    ..NicKind::BLANK
};

/// Receive packet steering, by the queue: "rx-0".
pub static RPS: NicKind = NicKind {
    tag: "nic_rps",
    noun: " rps_cpus",
    grammar: [&QUEUE, &CPU_LIST],
    get: |nic, queue| text_of_mask(&nic.rps, queue),
    put: |nic, queue, value| put_mask(&mut nic.rps, queue, value),
    by: By::QueueMask("rps_cpus"),
    ..NicKind::BLANK
};

/// Transmit packet steering, by the queue: "tx-0".
pub static XPS: NicKind = NicKind {
    tag: "nic_xps",
    noun: " xps_cpus",
    grammar: [&QUEUE, &CPU_LIST],
    get: |nic, queue| text_of_mask(&nic.xps, queue),
    put: |nic, queue, value| put_mask(&mut nic.xps, queue, value),
    by: By::QueueMask("xps_cpus"),
    ..NicKind::BLANK
};

/// The number of queues from 0 over which a table spreads flows equally; `None` if it does not.
pub fn equal_queues(table: &[u32]) -> Option<u32> {
    let queues = table.iter().max()?.checked_add(1)?;
    let is_equal = table.iter().copied().eq((0..queues).cycle().take(table.len()));
    is_equal.then_some(queues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_spread_is_told_from_other_tables() {
        assert_eq!(equal_queues(&[0, 1, 2, 0, 1, 2, 0, 1]), Some(3));
        assert_eq!(equal_queues(&[0, 0, 0]), Some(1));
        for table in [&[][..], &[1, 0], &[0, 0, 1, 1], &[1, 1], &[u32::MAX]] {
            assert_eq!(equal_queues(table), None, "{table:?}");
        }
    }
}
