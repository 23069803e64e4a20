//! Queues of an interface that Onload drives over AF_XDP.

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::{NUMBER, WORD},
    kind::{Ethtool, Wire},
};
use lowlat_host::Reading;

/// The only parameter is "queues"; 0 if the interface is not registered.
pub static KIND: NicKind = NicKind {
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
    part: Part::RunTime,
    tuned: "",
};
