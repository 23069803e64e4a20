//! Forward error correction of an interface (`ethtool --set-fec`).

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Wire},
};
use lowlat_host::Reading;

/// "encoding", as words with commas between: "auto,rs".
pub static KIND: NicKind = NicKind {
    tag: "nic_fec",
    noun: " of FEC",
    grammar: [&WORD, &WORD],
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
    part: Part::RunTime,
    tuned: "",
};
