//! Decodes answers of the ethtool family into facts. Attribute numbers are those of linux/ethtool_netlink.h.

use super::ioctl::word;
use crate::netlink::message::{Attributes, text, u32_at};
use lowlat_host::snapshot::{Channels, Coalescing, Eee, Fec, Pause, Rings, Timestamping};
use std::collections::{BTreeMap, BTreeSet};

fn number(answer: &Attributes<'_>, kind: u16) -> Option<u32> {
    u32_at(answer.value_of(kind)?, 0)
}

fn flag(answer: &Attributes<'_>, kind: u16) -> Option<bool> {
    answer.value_of(kind)?.first().map(|byte| *byte != 0)
}

/// An answer that is a list of numbers. The word N of a structure of the ioctl, whose word 0 is the command, is the
/// attribute N + 1 of netlink, whose attribute 1 is a header.
#[derive(Clone, Copy)]
pub(super) enum EthtoolNumbers<'a> {
    Netlink(&'a [u8]),
    Structure(&'a [u8]),
}

impl EthtoolNumbers<'_> {
    /// The kernel omits in netlink what the device or its driver does not have.
    fn get(self, kind: u16) -> Option<u32> {
        match self {
            Self::Netlink(answer) => number(&Attributes(answer), kind),
            Self::Structure(data) => Some(word(data, usize::from(kind) - 1)),
        }
    }

    fn flag(self, kind: u16) -> Option<bool> {
        match self {
            Self::Netlink(answer) => flag(&Attributes(answer), kind),
            Self::Structure(_) => self.get(kind).map(|word| word != 0),
        }
    }
}

pub(super) fn channels(answer: EthtoolNumbers<'_>) -> Channels {
    let count = |kind| answer.get(kind).unwrap_or(0);
    Channels {
        rx_max: count(2),
        tx_max: count(3),
        combined_max: count(5),
        rx: count(6),
        tx: count(7),
        combined: count(9),
    }
}

pub(super) fn rings(answer: EthtoolNumbers<'_>) -> Rings {
    let count = |kind| answer.get(kind).unwrap_or(0);
    Rings { rx_max: count(2), tx_max: count(5), rx: count(6), tx: count(9) }
}

/// The coalescing of an interface or a queue.
pub(super) fn coalescing(answer: EthtoolNumbers<'_>) -> Coalescing {
    Coalescing {
        rx_usecs: answer.get(2),
        rx_frames: answer.get(3),
        rx_usecs_irq: answer.get(4),
        tx_usecs: answer.get(6),
        tx_frames: answer.get(7),
        adaptive_rx: answer.flag(11),
        adaptive_tx: answer.flag(12),
    }
}

/// A queue's coalescing without the zeros that the ioctl has for what the interface does not support.
pub(super) fn as_far_as(queue: &Coalescing, interface: Option<&Coalescing>) -> Coalescing {
    let Some(has) = interface else { return queue.clone() };
    Coalescing {
        rx_usecs: has.rx_usecs.and(queue.rx_usecs),
        rx_frames: has.rx_frames.and(queue.rx_frames),
        rx_usecs_irq: has.rx_usecs_irq.and(queue.rx_usecs_irq),
        tx_usecs: has.tx_usecs.and(queue.tx_usecs),
        tx_frames: has.tx_frames.and(queue.tx_frames),
        adaptive_rx: has.adaptive_rx.and(queue.adaptive_rx),
        adaptive_tx: has.adaptive_tx.and(queue.adaptive_tx),
    }
}

pub(super) fn pause(answer: EthtoolNumbers<'_>) -> Pause {
    let is_on = |kind| answer.flag(kind).unwrap_or(false);
    Pause { autoneg: is_on(2), rx: is_on(3), tx: is_on(4) }
}

pub(super) fn eee(answer: &[u8]) -> Eee {
    let is_on = |kind| flag(&Attributes(answer), kind).unwrap_or(false);
    Eee { is_active: is_on(4), eee: is_on(5) }
}

/// Encodings of forward error correction: bit of the link mode, its name in link modes, ethtool's word.
pub(super) const FEC_ENCODINGS: [(u32, &str, &str); 4] =
    [(49, "None", "off"), (50, "RS", "rs"), (51, "BASER", "baser"), (74, "LLRS", "llrs")];

pub(super) fn fec(answer: &[u8]) -> Fec {
    const MODES: u16 = 2;
    const AUTO: u16 = 3;
    const ACTIVE: u16 = 4;
    let answer = Attributes(answer);
    let word = |bit: u32| FEC_ENCODINGS.iter().find(|(known, ..)| *known == bit).map(|(.., word)| *word);
    let is_auto = flag(&answer, AUTO) == Some(true);
    let modes = answer.value_of(MODES).map(bits).into_iter().flatten();
    let modes = modes.filter_map(|bit| word(bit.index?));
    Fec {
        configured: is_auto.then_some("auto").into_iter().chain(modes).map(str::to_owned).collect(),
        active: number(&answer, ACTIVE).and_then(word).map(str::to_owned),
    }
}

/// Every feature is listed among those that the hardware can change; the active list contains those that are
/// on.
pub(super) fn features(answer: &[u8]) -> BTreeMap<String, bool> {
    const HARDWARE: u16 = 2;
    const ACTIVE: u16 = 4;
    let answer = Attributes(answer);
    let mut features = BTreeMap::new();
    for (kind, is_on) in [(HARDWARE, false), (ACTIVE, true)] {
        let bits = answer.value_of(kind).map(bits).into_iter().flatten();
        features.extend(bits.filter(|bit| !bit.name.is_empty()).map(|bit| (bit.name, is_on)));
    }
    features
}

/// Bit numbers in SOF_TIMESTAMPING (linux/net_tstamp.h).
const TX_HARDWARE: u32 = 0;
const RX_HARDWARE: u32 = 2;

pub(super) fn timestamping(answer: &[u8]) -> Timestamping {
    const FLAGS: u16 = 2;
    const PHC_INDEX: u16 = 5;
    let answer = Attributes(answer);
    let flags: Vec<Bit> = answer.value_of(FLAGS).map(bits).into_iter().flatten().collect();
    let has = |index| flags.iter().any(|bit| bit.index == Some(index));
    Timestamping {
        hardware_rx: has(RX_HARDWARE),
        hardware_tx: has(TX_HARDWARE),
        phc_index: number(&answer, PHC_INDEX),
    }
}

/// Every switch of the driver is in the list; those that are on have a value.
pub(super) fn private_flags(answer: &[u8]) -> BTreeMap<String, bool> {
    const FLAGS: u16 = 2;
    let bits = Attributes(answer).value_of(FLAGS).map(bits).into_iter().flatten();
    bits.filter(|bit| !bit.name.is_empty()).map(|bit| (bit.name, bit.has_value)).collect()
}

/// An RSS context and its queues; `None` for the interface's own.
pub(super) fn rss_context(answer: &[u8]) -> Option<(u32, Vec<u32>)> {
    const CONTEXT: u16 = 2;
    const TABLE: u16 = 4;
    let answer = Attributes(answer);
    let context = number(&answer, CONTEXT).filter(|number| *number > 0)?;
    let table = answer.value_of(TABLE).unwrap_or_default();
    let queues: BTreeSet<u32> = table.chunks_exact(4).filter_map(|entry| u32_at(entry, 0)).collect();
    Some((context, queues.into_iter().collect()))
}

/// Priorities with flow control from `struct dcbmsg` and its attributes; `None` if the driver has no such control.
pub(super) fn pfc(answer: &[u8]) -> Option<Vec<u32>> {
    const IEEE: u16 = 13;
    const PFC: u16 = 2;
    let pfc = Attributes(Attributes(answer.get(4..)?).value_of(IEEE)?).value_of(PFC)?;
    // `struct ieee_pfc`: the classes that can have it, then those that have.
    let enabled = *pfc.get(1)?;
    Some((0..8).filter(|priority| enabled & (1 << priority) != 0).collect())
}

/// Form, vendor and part of a plug-in module; `None` if its memory has none.
pub(super) fn module(memory: &[u8]) -> Option<String> {
    // Identifiers of SFF-8024, and where the standard of each has vendor and part of 16 characters.
    let (form, vendor, part) = match memory.first()? {
        0x03 => ("SFP", 20, 40),
        0x0C => ("QSFP", 148, 168),
        0x0D => ("QSFP+", 148, 168),
        0x11 => ("QSFP28", 148, 168),
        0x18 => ("QSFP-DD", 129, 148),
        0x19 => ("OSFP", 129, 148),
        0x1E => ("QSFP+ with CMIS", 129, 148),
        0x1F => ("SFP-DD", 129, 148),
        0x20 => ("SFP+ with CMIS", 129, 148),
        _ => return None,
    };
    let words = |at: usize| memory.get(at..at + 16).map(text);
    let parts = [Some(form.to_owned()), words(vendor), words(part)];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    Some(parts.join(" "))
}

struct Bit {
    index: Option<u32>,
    name: String,
    has_value: bool,
}

/// The bits of a bitset in its long form. In a list without a mask each bit is set.
fn bits(bitset: &[u8]) -> impl Iterator<Item = Bit> {
    const BITS: u16 = 3;
    const INDEX: u16 = 1;
    const NAME: u16 = 2;
    const VALUE: u16 = 3;
    let bits = Attributes(Attributes(bitset).value_of(BITS).unwrap_or_default());
    bits.map(|(_, bit)| {
        let bit = Attributes(bit);
        Bit {
            index: number(&bit, INDEX),
            name: bit.value_of(NAME).map(text).unwrap_or_default(),
            has_value: bit.value_of(VALUE).is_some(),
        }
    })
}
