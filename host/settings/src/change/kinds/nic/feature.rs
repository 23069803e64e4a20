//! Features of an interface (`ethtool -K`).

use super::{By, NicKind, on_off};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Wire},
};
use lowlat_host::Reading;

/// By the kernel's name: "rx-lro".
pub static KIND: NicKind = NicKind {
    tag: "nic_feature",
    noun: "",
    grammar: [&WORD, &WORD],
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
    part: Part::RunTime,
    tuned: "features",
};
