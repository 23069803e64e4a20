//! Features.

use super::{Value, ask, is_without_netlink, set_by};
use crate::{
    netlink::{
        Refusal,
        message::{NESTED, attribute},
    },
    snapshot::ethtool::{decode, ioctl, request},
};
use rustix::io::Errno;

pub(super) fn get(interface: &str, name: &str) -> Result<Option<Value>, Errno> {
    let features = match ask(interface, request::FEATURES) {
        Ok(answer) => decode::features(&answer),
        Err(errno) if is_without_netlink(errno) => ioctl::features(interface)?,
        Err(errno) => return Err(errno),
    };
    Ok(features.get(name).copied().map(Value::Switch))
}

pub(super) fn set(interface: &str, name: &str, is_on: bool) -> Result<(), Refusal> {
    let attributes = wanted(name, is_on);
    set_by(interface, request::SET_FEATURES, &attributes, || ioctl::set_feature(interface, name, is_on))
}

/// A request for one feature: a bitset with one named bit. A bit without the value flag means off.
fn wanted(name: &str, is_on: bool) -> Vec<u8> {
    const WANTED: u16 = 3;
    const BITS: u16 = 3;
    const BIT: u16 = 1;
    const NAME: u16 = 2;
    const VALUE: u16 = 3;
    let value = if is_on { attribute(VALUE, &[]) } else { Vec::new() };
    let bit = [attribute(NAME, &[name.as_bytes(), &[0]].concat()), value].concat();
    let bits = attribute(BITS | NESTED, &attribute(BIT | NESTED, &bit));
    attribute(WANTED | NESTED, &bits)
}
