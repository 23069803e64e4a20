//! A driver's report about its interface.
//!
//! Generic netlink is used first: it distinguishes a missing value from a zero. The older ioctl covers the
//! rest: the driver's firmware version, the indirection table, and everything on kernels before 5.6.

mod decode;
mod ioctl;
mod lists;
mod settings;

pub use settings::{EthtoolError, Setting, Value};

use super::{kept, napi};
use crate::{
    Root,
    netlink::{
        Connection, Family, ask_route,
        message::{Attributes, attribute},
    },
};
use decode::EthtoolNumbers;
use lowlat_host::{
    Reading,
    snapshot::{Channels, Coalescing, Eee, Fec, Pause, Rings, Timestamping},
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Numbers of the requests sent directly by this crate (linux/ethtool_netlink.h).
mod request {
    pub(super) const FEATURES: u8 = 11;
    pub(super) const PRIVATE_FLAGS: u8 = 13;
    pub(super) const SET_FEATURES: u8 = 12;
    pub(super) const RINGS: u8 = 15;
    pub(super) const CHANNELS: u8 = 17;
    pub(super) const COALESCING: u8 = 19;
    pub(super) const PAUSE: u8 = 21;
    pub(super) const EEE: u8 = 23;
    pub(super) const TIMESTAMPING: u8 = 25;
    pub(super) const FEC: u8 = 29;
    pub(super) const SET_FEC: u8 = 30;
    pub(super) const MODULE_MEMORY: u8 = 31;
    pub(super) const RSS: u8 = 38;
}

/// All answers for one interface, in the format that captures keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    pub(super) driver: Reading<Driver>,
    pub(super) channels: Reading<Channels>,
    pub(super) rings: Reading<Rings>,
    pub(super) coalescing: Reading<Coalescing>,
    pub(super) offloads: Reading<BTreeMap<String, bool>>,
    pub(super) timestamping: Reading<Timestamping>,
    #[serde(default = "not_in_capture")]
    pub(super) pause: Reading<Pause>,
    #[serde(default = "not_in_capture")]
    pub(super) fec: Reading<Fec>,
    #[serde(default = "not_in_capture")]
    pub(super) eee: Reading<Eee>,
    #[serde(default = "not_in_capture")]
    pub(super) rss_indirection: Reading<Vec<u32>>,
    #[serde(default = "not_in_capture")]
    pub(super) queue_coalescing: Reading<Vec<Coalescing>>,
    #[serde(default = "not_in_capture")]
    pub(super) private_flags: Reading<BTreeMap<String, bool>>,
    #[serde(default = "not_in_capture")]
    pub(super) driver_drops: Reading<BTreeMap<String, u64>>,
    #[serde(default = "not_in_capture")]
    pub(super) rss_contexts: Reading<BTreeMap<u32, Vec<u32>>>,
    #[serde(default = "not_in_capture")]
    pub(super) flow_rules: Reading<BTreeMap<u32, String>>,
    #[serde(default = "not_in_capture")]
    pub(super) pfc_priorities: Reading<Vec<u32>>,
    #[serde(default = "not_in_capture")]
    pub(super) transceiver: Reading<String>,
}

/// Captures of earlier versions, and trees of other tools, lack answers, which says nothing about the driver.
fn not_in_capture<T>() -> Reading<T> {
    Reading::unparsable("ethtool", "nothing in this capture", "an answer; capture the host again")
}

/// `ethtool -i`; an empty text means unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) firmware: String,
}

/// The answers of the live host, or as a capture kept them. In a tree without them the driver was never asked.
pub(super) fn answers(root: &Root, interface: &str) -> Reading<Answers> {
    match kept(root, "ethtool", interface, || ask(interface)) {
        Reading::Absent => not_in_capture(),
        answers => answers,
    }
}

fn ask(interface: &str) -> Answers {
    let mut netlink = Connection::open(Family::Ethtool);
    let transceiver = over(&mut netlink, |connection| module_memory(connection, interface));
    let rss_contexts = over(&mut netlink, |connection| connection.list_about(interface, request::RSS));
    let mut asked = |request: u8| over(&mut netlink, |connection| connection.ask_about(interface, request));
    let channels = numbers(interface, asked(request::CHANNELS), ioctl::command::CHANNELS, decode::channels);
    let coalescing =
        numbers(interface, asked(request::COALESCING), ioctl::command::COALESCING, decode::coalescing);
    let queues = channels.known().map_or(1, |all| all.combined.saturating_add(all.rx.max(all.tx)));
    Answers {
        driver: reading(ioctl::driver(interface)),
        channels,
        rings: numbers(interface, asked(request::RINGS), ioctl::command::RINGS, decode::rings),
        coalescing: coalescing.clone(),
        offloads: either(interface, asked(request::FEATURES), decode::features, ioctl::features),
        timestamping: either(
            interface,
            asked(request::TIMESTAMPING),
            decode::timestamping,
            ioctl::timestamping,
        ),
        pause: numbers(interface, asked(request::PAUSE), ioctl::command::PAUSE, decode::pause),
        fec: asked(request::FEC).map(|answer| decode::fec(&answer)),
        eee: either(interface, asked(request::EEE), decode::eee, ioctl::eee),
        rss_indirection: reading(ioctl::indirection(interface)),
        queue_coalescing: reading(lists::queue_coalescing(interface, queues))
            .map(|each| each.iter().map(|queue| decode::as_far_as(queue, coalescing.known())).collect()),
        private_flags: asked(request::PRIVATE_FLAGS).map(|answer| decode::private_flags(&answer)),
        driver_drops: reading(lists::driver_drops(interface)),
        rss_contexts: rss_contexts.map(|all| all.iter().filter_map(|one| decode::rss_context(one)).collect()),
        flow_rules: reading(lists::flow_rules(interface)),
        pfc_priorities: reading(pfc(interface)).and_then(|answer| Reading::from_option(decode::pfc(&answer))),
        transceiver: transceiver.and_then(|memory| Reading::from_option(decode::module(&memory))),
    }
}

/// The answer over netlink, otherwise that of the ioctl.
fn either<T>(
    interface: &str,
    answer: Reading<Vec<u8>>,
    decode: fn(&[u8]) -> T,
    ioctl: fn(&str) -> Result<T, Errno>,
) -> Reading<T> {
    answer.map(|answer| decode(&answer)).or(|| reading(ioctl(interface)))
}

/// The numbers over netlink, otherwise those of the structure that the ioctl's command fills.
fn numbers<T>(
    interface: &str,
    answer: Reading<Vec<u8>>,
    command: u32,
    decode: fn(EthtoolNumbers<'_>) -> T,
) -> Reading<T> {
    let answer = answer.map(|answer| decode(EthtoolNumbers::Netlink(&answer)));
    answer
        .or(|| reading(ioctl::fixed(interface, command)).map(|data| decode(EthtoolNumbers::Structure(&data))))
}

/// An answer over a connection, or why there is none.
fn over<T>(
    netlink: &mut Result<Connection, Errno>,
    ask: impl FnOnce(&mut Connection) -> Result<T, Errno>,
) -> Reading<T> {
    reading(netlink.as_mut().map_err(|error| *error).and_then(ask))
}

/// The first 256 bytes of a plug-in module: its lower memory and upper page 0.
fn module_memory(connection: &mut Connection, interface: &str) -> Result<Vec<u8>, Errno> {
    const OFFSET: u16 = 2;
    const LENGTH: u16 = 3;
    const PAGE: u16 = 4;
    const I2C_ADDRESS: u16 = 6;
    const DATA: u16 = 7;
    let mut memory = Vec::new();
    for offset in [0_u32, 128] {
        let place = [
            attribute(OFFSET, &offset.to_ne_bytes()),
            attribute(LENGTH, &128_u32.to_ne_bytes()),
            attribute(PAGE, &[0]),
            attribute(I2C_ADDRESS, &[0x50]),
        ];
        match connection.ask_more_about(interface, request::MODULE_MEMORY, &place.concat()) {
            Ok(answer) => memory.extend(Attributes(&answer).value_of(DATA).ok_or(Errno::BADMSG)?),
            // The lower half of an SFP names it.
            Err(_) if offset > 0 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(memory)
}

/// Asks data center bridging for its IEEE attributes (linux/dcbnl.h).
fn pfc(interface: &str) -> Result<Vec<u8>, Errno> {
    const RTM_GETDCB: u16 = 78;
    const IEEE_GET: u8 = 21;
    const IFNAME: u16 = 1;
    let name = attribute(IFNAME, &[interface.as_bytes(), &[0]].concat());
    ask_route(RTM_GETDCB, &[&[0, IEEE_GET, 0, 0], name.as_slice()].concat())
}

/// Converts an answer: what the driver does not support is absent, and so is an interface that was removed since.
pub(super) fn reading<T>(answer: Result<T, Errno>) -> Reading<T> {
    match answer {
        Ok(value) => Reading::Known(value),
        // The last two mean a kernel without netlink, or a sandbox that hides it.
        Err(
            Errno::OPNOTSUPP
            | Errno::NODEV
            | Errno::NOENT
            | Errno::INVAL
            | Errno::NOTTY
            | Errno::AFNOSUPPORT
            | Errno::PROTONOSUPPORT,
        ) => Reading::Absent,
        Err(Errno::PERM | Errno::ACCESS) => Reading::Denied,
        Err(error) => Reading::unparsable("netlink", &error.to_string(), "the kernel's answer"),
    }
}

#[cfg(test)]
mod tests;
