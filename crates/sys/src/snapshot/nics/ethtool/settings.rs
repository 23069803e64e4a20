//! Changing an interface: what `lowlat-settings` knows of its groups of parameters, sent to the kernel. Netlink goes first, and tells why a driver refuses; the ioctl is
//! for kernels whose netlink does not take the request (channels and features came with 5.7 and 5.8).

use super::{
    ioctl,
    message::{Attributes, NESTED, attribute, u32_at},
    netlink::{Connection, Refusal, request},
};
use lowlat_settings::change::{Ethtool, Field, Wire};
use rustix::io::Errno;
use std::fmt;
use thiserror::Error;

/// One thing of an interface that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    group: &'static Ethtool,
    parameter: Parameter,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parameter {
    /// A place in the group's message and structure.
    Field { get: u8, set: u8, ioctl: u32, field: Field },
    /// A feature by the kernel's name.
    Feature(String),
}

/// What it is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A count of queues or frames, or microseconds.
    Number(u32),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Switch(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
        }
    }
}

/// Why a setting was not read or changed.
#[derive(Debug, Error)]
pub enum EthtoolError {
    /// The kernel or the driver refused.
    #[error("{errno}{}", .advice)]
    Refused {
        /// The kernel's error.
        errno: Errno,
        /// The driver's words, and what to do.
        advice: String,
    },
    /// It was taken, and had no effect.
    #[error(
        "the driver took it and left it {found}: the feature is fixed, or another one holds it (ethtool -k shows both); \
         leave this step out"
    )]
    Ineffective {
        /// What it is now.
        found: Value,
    },
    /// The value is none that the setting can have.
    #[error("found {found:?}, expected {expected}")]
    Value {
        /// The text.
        found: String,
        /// What would be right.
        expected: &'static str,
    },
}

impl EthtoolError {
    /// Whether the driver said no to this value, for good: not that this user may not ask, or that no answer came.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { errno, .. } => matches!(
                *errno,
                Errno::OPNOTSUPP | Errno::INVAL | Errno::RANGE | Errno::BUSY | Errno::NODEV | Errno::IO
            ),
            Self::Ineffective { .. } => true,
            Self::Value { .. } => false,
        }
    }
}

impl Setting {
    /// The parameter of this name; none if the group has no such parameter.
    pub fn of(group: &'static Ethtool, name: &str) -> Option<Self> {
        let parameter = match &group.wire {
            Wire::Fields { get, set, ioctl, fields } => {
                let field = *fields.iter().find(|field| field.name == name)?;
                Parameter::Field { get: *get, set: *set, ioctl: *ioctl, field }
            }
            Wire::Features => {
                // ETH_GSTRING_LEN, with the zero.
                let is_name =
                    !name.is_empty() && name.len() < 32 && name.chars().all(|c| c.is_ascii_graphic());
                Parameter::Feature(is_name.then(|| name.to_owned())?)
            }
        };
        Some(Self { group, parameter })
    }

    /// The value that a text means for this setting.
    pub fn value(&self, text: &str) -> Result<Value, EthtoolError> {
        let is_switch = match &self.parameter {
            Parameter::Field { field, .. } => field.is_switch,
            Parameter::Feature(_) => true,
        };
        let value = match (is_switch, text.trim()) {
            (true, "on") => Some(Value::Switch(true)),
            (true, "off") => Some(Value::Switch(false)),
            (true, _) => None,
            (false, number) => number.parse().ok().map(Value::Number),
        };
        let expected = if is_switch { "\"on\" or \"off\"" } else { "a number such as 8" };
        value.ok_or_else(|| EthtoolError::Value { found: text.chars().take(80).collect(), expected })
    }

    /// What an interface has it set to; none when there is no such interface, or its driver does not have it.
    pub fn get(&self, interface: &str) -> Result<Option<Value>, EthtoolError> {
        let found = match &self.parameter {
            Parameter::Field { get, ioctl, field, .. } => get_field(interface, *get, *ioctl, *field),
            Parameter::Feature(name) => feature(interface, name),
        };
        match found {
            Ok(found) => Ok(found),
            Err(Errno::NODEV | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(EthtoolError::Refused { errno, advice: String::new() }),
        }
    }

    /// Sets it. A change of queues can take the link down for a moment.
    pub fn set(&self, interface: &str, to: Value) -> Result<(), EthtoolError> {
        let (request, attributes) = match &self.parameter {
            Parameter::Field { set, field, .. } => (*set, encode(*field, to)),
            Parameter::Feature(name) => (request::SET_FEATURES, wanted(name, to)),
        };
        let by_netlink = match Connection::open() {
            Ok(mut connection) => connection.set(interface, request, &attributes),
            Err(errno) => Err(Refusal { errno, text: String::new() }),
        };
        let set = match by_netlink {
            Err(refusal) if is_without_netlink(refusal.errno) => {
                self.set_by_ioctl(interface, to).map_err(|errno| Refusal { errno, text: refusal.text })
            }
            other => other,
        };
        set.map_err(|refusal| self.error(interface, &refusal))?;
        // A feature that cannot be changed is passed over without an error.
        match (&self.parameter, self.get(interface)?) {
            (Parameter::Feature(_), Some(found)) if found != to => Err(EthtoolError::Ineffective { found }),
            _ => Ok(()),
        }
    }

    fn set_by_ioctl(&self, interface: &str, to: Value) -> Result<(), Errno> {
        match &self.parameter {
            Parameter::Field { ioctl, field, .. } => ioctl::set_word(interface, *ioctl, field.word, to.raw()),
            Parameter::Feature(name) => ioctl::set_feature(interface, name, to == Value::Switch(true)),
        }
    }

    /// The error with the driver's words and the next step.
    fn error(&self, interface: &str, refusal: &Refusal) -> EthtoolError {
        let errno = refusal.errno;
        let said = if refusal.text.is_empty() { String::new() } else { format!(" ({:?})", refusal.text) };
        let is_adaptive = |own: &str, switch: &str| {
            let is_own =
                matches!(&self.parameter, Parameter::Field { field, .. } if field.name.starts_with(own));
            let switch = Self::of(self.group, switch).filter(|_| is_own);
            switch.and_then(|switch| switch.get(interface).ok()?) == Some(Value::Switch(true))
        };
        let next = match errno {
            Errno::PERM | Errno::ACCESS => "run as root",
            Errno::NODEV => "there is no such interface; make a new plan",
            Errno::BUSY => "something uses the queues (XDP, AF_XDP, TC); end it, or leave this step out",
            _ if is_adaptive("rx-", "adaptive-rx") => {
                "adaptive-rx is on; turn it off first, or leave this step out"
            }
            _ if is_adaptive("tx-", "adaptive-tx") => {
                "adaptive-tx is on; turn it off first, or leave this step out"
            }
            Errno::OPNOTSUPP => "the driver does not have this setting; leave this step out",
            Errno::INVAL | Errno::RANGE => "the driver does not take this value; leave this step out",
            _ => "try again, or leave this step out",
        };
        EthtoolError::Refused { errno, advice: format!("{said}; {next}") }
    }
}

/// Kernels without the family, without the request, and sandboxes that hide netlink.
fn is_without_netlink(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOENT | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT)
}

impl Value {
    fn raw(self) -> u32 {
        match self {
            Self::Number(number) => number,
            Self::Switch(is_on) => u32::from(is_on),
        }
    }
}

/// The attribute of a request. Switches are bytes, numbers are words.
fn encode(field: Field, to: Value) -> Vec<u8> {
    match to {
        Value::Number(number) => attribute(field.attribute, &number.to_ne_bytes()),
        Value::Switch(is_on) => attribute(field.attribute, &[u8::from(is_on)]),
    }
}

fn decode(field: Field, answer: &[u8]) -> Option<Value> {
    let value = Attributes(answer).value_of(field.attribute)?;
    if field.is_switch {
        value.first().map(|byte| Value::Switch(*byte != 0))
    } else {
        u32_at(value, 0).map(Value::Number)
    }
}

fn get_field(interface: &str, get: u8, ioctl: u32, field: Field) -> Result<Option<Value>, Errno> {
    match Connection::open().and_then(|mut connection| connection.ask(interface, get)) {
        Ok(answer) => Ok(decode(field, &answer)),
        Err(errno) if is_without_netlink(errno) => {
            let word = ioctl::word_of(interface, ioctl, field.word)?;
            Ok(Some(if field.is_switch { Value::Switch(word != 0) } else { Value::Number(word) }))
        }
        Err(errno) => Err(errno),
    }
}

fn feature(interface: &str, name: &str) -> Result<Option<Value>, Errno> {
    let features =
        match Connection::open().and_then(|mut connection| connection.ask(interface, request::FEATURES)) {
            Ok(answer) => super::decode::features(&answer),
            Err(errno) if is_without_netlink(errno) => ioctl::features(interface)?,
            Err(errno) => return Err(errno),
        };
    Ok(features.get(name).copied().map(Value::Switch))
}

/// The wish for one feature: a bitset of one named bit. A bit without the value flag is to be off.
fn wanted(name: &str, to: Value) -> Vec<u8> {
    const WANTED: u16 = 3;
    const BITS: u16 = 3;
    const BIT: u16 = 1;
    const NAME: u16 = 2;
    const VALUE: u16 = 3;
    let value = if to == Value::Switch(true) { attribute(VALUE, &[]) } else { Vec::new() };
    let bit = [attribute(NAME, &[name.as_bytes(), &[0]].concat()), value].concat();
    let bits = attribute(BITS | NESTED, &attribute(BIT | NESTED, &bit));
    attribute(WANTED | NESTED, &bits)
}
