//! What a driver reports about its interface.
//!
//! Generic netlink is used first: it distinguishes a missing value from a zero. The older ioctl covers the
//! rest: the driver's firmware version, the indirection table, and everything on kernels before 5.6.

mod decode;
mod ioctl;
mod settings;

pub use settings::{EthtoolError, Setting, Value};

use super::{kept, napi};
use crate::{
    Root,
    netlink::{Connection, Family},
};
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
    pub(super) const SET_FEATURES: u8 = 12;
    pub(super) const RINGS: u8 = 15;
    pub(super) const CHANNELS: u8 = 17;
    pub(super) const COALESCING: u8 = 19;
    pub(super) const PAUSE: u8 = 21;
    pub(super) const EEE: u8 = 23;
    pub(super) const TIMESTAMPING: u8 = 25;
    pub(super) const FEC: u8 = 29;
    pub(super) const SET_FEC: u8 = 30;
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
    let mut asked = |request: u8| -> Reading<Vec<u8>> {
        match &mut netlink {
            Ok(connection) => reading(connection.ask_about(interface, request)),
            Err(error) => reading(Err(*error)),
        }
    };
    Answers {
        driver: reading(ioctl::driver(interface)),
        channels: asked(request::CHANNELS)
            .map(|answer| decode::channels(&answer))
            .or(|| reading(ioctl::channels(interface))),
        rings: asked(request::RINGS)
            .map(|answer| decode::rings(&answer))
            .or(|| reading(ioctl::rings(interface))),
        coalescing: asked(request::COALESCING)
            .map(|answer| decode::coalescing(&answer))
            .or(|| reading(ioctl::coalescing(interface))),
        offloads: asked(request::FEATURES)
            .map(|answer| decode::features(&answer))
            .or(|| reading(ioctl::features(interface))),
        timestamping: asked(request::TIMESTAMPING)
            .map(|answer| decode::timestamping(&answer))
            .or(|| reading(ioctl::timestamping(interface))),
        pause: asked(request::PAUSE)
            .map(|answer| decode::pause(&answer))
            .or(|| reading(ioctl::pause(interface))),
        fec: asked(request::FEC).map(|answer| decode::fec(&answer)),
        eee: asked(request::EEE).map(|answer| decode::eee(&answer)).or(|| reading(ioctl::eee(interface))),
        rss_indirection: reading(ioctl::indirection(interface)),
    }
}

/// What the driver does not support is absent, and so is an interface that was removed in the meantime.
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
