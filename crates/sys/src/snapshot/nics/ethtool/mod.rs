//! What a driver reports about its interface.
//!
//! Generic netlink is used first: it distinguishes a missing value from a zero. The older ioctl covers the
//! rest: the driver's firmware version, and everything on kernels before 5.6.
//!
//! The messages are assembled here, over rustix's sockets. The requests are five fixed ones and the answers
//! are flat, while the existing crates (ethtool, neli) bring an asynchronous runtime or generated types of
//! several times the size.

mod decode;
mod ioctl;
mod message;
mod netlink;
mod settings;

pub use settings::{EthtoolError, Setting, Value};

use crate::Root;
use lowlat_host::{
    Reading,
    snapshot::{Channels, Coalescing, Rings, Timestamping},
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All answers for one interface, in the format that captures keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Answers {
    pub(super) driver: Reading<Driver>,
    pub(super) channels: Reading<Channels>,
    pub(super) rings: Reading<Rings>,
    pub(super) coalescing: Reading<Coalescing>,
    pub(super) offloads: Reading<BTreeMap<String, bool>>,
    pub(super) timestamping: Reading<Timestamping>,
}

/// `ethtool -i`; an empty text means unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Driver {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) firmware: String,
}

/// The answers of the live host, or as a capture kept them.
pub(super) fn answers(root: &Root, interface: &str) -> Reading<Answers> {
    let name = format!("ethtool/{}", plain(interface));
    let bytes =
        root.interface(&name, || Reading::Known(serde_json::to_vec(&ask(interface)).unwrap_or_default()));
    bytes.and_then(|bytes| match serde_json::from_slice(&bytes) {
        Ok(answers) => Reading::Known(answers),
        Err(error) => Reading::unparsable(&name, &error.to_string(), "answers of ethtool as JSON"),
    })
}

/// An interface's name may contain almost any byte; in the capture's file name other bytes become `_`.
fn plain(interface: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let name: String = interface.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    name.replace("..", "__")
}

fn ask(interface: &str) -> Answers {
    let mut netlink = netlink::Connection::open();
    let mut asked = |request: u8| -> Reading<Vec<u8>> {
        match &mut netlink {
            Ok(connection) => reading(connection.ask(interface, request)),
            Err(error) => reading(Err(*error)),
        }
    };
    Answers {
        driver: reading(ioctl::driver(interface)),
        channels: asked(netlink::request::CHANNELS)
            .map(|answer| decode::channels(&answer))
            .or(|| reading(ioctl::channels(interface))),
        rings: asked(netlink::request::RINGS)
            .map(|answer| decode::rings(&answer))
            .or(|| reading(ioctl::rings(interface))),
        coalescing: asked(netlink::request::COALESCING)
            .map(|answer| decode::coalescing(&answer))
            .or(|| reading(ioctl::coalescing(interface))),
        offloads: asked(netlink::request::FEATURES)
            .map(|answer| decode::features(&answer))
            .or(|| reading(ioctl::features(interface))),
        timestamping: asked(netlink::request::TIMESTAMPING)
            .map(|answer| decode::timestamping(&answer))
            .or(|| reading(ioctl::timestamping(interface))),
    }
}

/// What the driver does not support is absent, and so is an interface that was removed in the meantime.
fn reading<T>(answer: Result<T, Errno>) -> Reading<T> {
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
        Err(error) => Reading::unparsable("ethtool", &error.to_string(), "the driver's answer"),
    }
}

#[cfg(test)]
mod tests;
