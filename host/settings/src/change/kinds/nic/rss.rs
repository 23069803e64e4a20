//! The indirection table of receive side scaling (`ethtool -X`).

use super::{By, NicKind};
use crate::change::{
    Part,
    grammar::WORD,
    kind::{Ethtool, Wire},
};
use lowlat_host::Reading;

/// "equal": the number of queues over which the table spreads flows equally, or all its entries with commas between.
pub static KIND: NicKind = NicKind {
    tag: "nic_rss",
    noun: " RSS queues",
    grammar: [&WORD, &WORD],
    get: |nic, name| {
        let value = nic.rss_indirection.as_ref().map(|table| match equal(table) {
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
    part: Part::RunTime,
    tuned: "",
};

/// The number of queues from 0 over which a table spreads flows equally; `None` if it does not.
pub fn equal(table: &[u32]) -> Option<u32> {
    let queues = table.iter().max()?.checked_add(1)?;
    let is_equal = table.iter().copied().eq((0..queues).cycle().take(table.len()));
    is_equal.then_some(queues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_spread_is_told_from_other_tables() {
        assert_eq!(equal(&[0, 1, 2, 0, 1, 2, 0, 1]), Some(3));
        assert_eq!(equal(&[0, 0, 0]), Some(1));
        for table in [&[][..], &[1, 0], &[0, 0, 1, 1], &[1, 1], &[u32::MAX]] {
            assert_eq!(equal(table), None, "{table:?}");
        }
    }
}
