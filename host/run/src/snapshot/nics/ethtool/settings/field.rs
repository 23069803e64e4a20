//! A parameter with a place in a message and in a structure of the ioctl.

use super::{Value, ask, is_without_netlink, set_by};
use crate::{
    netlink::{
        Refusal,
        message::{Attributes, attribute, u32_at},
    },
    snapshot::ethtool::ioctl,
};
use lowlat_settings::change::Field;
use rustix::io::Errno;

pub(super) fn get(interface: &str, get: u8, ioctl: u32, field: Field) -> Result<Option<Value>, Errno> {
    match ask(interface, get) {
        Ok(answer) => Ok(decode(field, &answer)),
        Err(errno) if is_without_netlink(errno) => {
            let word = ioctl::word_of(interface, ioctl, field.word)?;
            Ok(Some(if field.is_switch { Value::Switch(word != 0) } else { Value::Number(word.into()) }))
        }
        Err(errno) => Err(errno),
    }
}

pub(super) fn set(
    interface: &str,
    (request, ioctl): (u8, u32),
    field: Field,
    to: &Value,
) -> Result<(), Refusal> {
    let raw = to.raw().ok_or(Errno::RANGE)?;
    // Switches are bytes, numbers are words.
    let attributes = if field.is_switch {
        attribute(field.attribute, &[u8::from(raw != 0)])
    } else {
        attribute(field.attribute, &raw.to_ne_bytes())
    };
    set_by(interface, request, &attributes, || ioctl::set_word(interface, ioctl, field.word, raw))
}

fn decode(field: Field, answer: &[u8]) -> Option<Value> {
    let value = Attributes(answer).value_of(field.attribute)?;
    if field.is_switch {
        value.first().map(|byte| Value::Switch(*byte != 0))
    } else {
        u32_at(value, 0).map(|number| Value::Number(number.into()))
    }
}
