//! Changes an interface: sends the parameters in the groups of `lowlat-settings` to the kernel. Netlink is
//! used first, because it explains a driver's errors. The ioctl is for kernels whose netlink does not support
//! the request (channels and features came with 5.7 and 5.8).

use super::{
    ioctl,
    message::{Attributes, NESTED, attribute, u32_at},
    netlink::{Connection, Refusal, request},
};
use lowlat_settings::change::{Ethtool, Field, Wire};
use rustix::io::Errno;
use std::fmt;
use thiserror::Error;

/// One setting of an interface that can be changed.
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

/// The value of a setting.
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
    /// The kernel or the driver rejected it.
    #[error("{errno}{}", .advice)]
    Refused {
        /// The kernel's error.
        errno: Errno,
        /// The driver's explanation, and what to do.
        advice: String,
    },
    /// It was accepted but had no effect.
    #[error(
        "the driver accepted the change but left the value {found}: the feature is fixed, or another one \
         controls it (ethtool -k shows both); leave this step out"
    )]
    Ineffective {
        /// The current value.
        found: Value,
    },
    /// The setting cannot have this value.
    #[error("found {found:?}, expected {expected}")]
    Value {
        /// The text.
        found: String,
        /// What is valid.
        expected: &'static str,
    },
}

impl EthtoolError {
    /// Whether the driver rejected this value permanently, as opposed to a missing permission or a missing
    /// answer.
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
    /// The parameter with this name; `None` if the group does not have it.
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

    /// Parses a value of this setting.
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

    /// The current value for an interface; `None` if the interface does not exist, or its driver lacks the
    /// setting.
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

    /// Sets the value. A change of queues can take the link down for a moment.
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
        // A feature that cannot be changed is ignored without an error.
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

    /// The error with the driver's explanation and the next step.
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
            Errno::NODEV => "the interface does not exist; make a new plan",
            Errno::BUSY => "the queues are in use (XDP, AF_XDP, TC); stop that, or leave this step out",
            _ if is_adaptive("rx-", "adaptive-rx") => {
                "adaptive-rx is on; turn it off first, or leave this step out"
            }
            _ if is_adaptive("tx-", "adaptive-tx") => {
                "adaptive-tx is on; turn it off first, or leave this step out"
            }
            Errno::OPNOTSUPP => "the driver does not support this setting; leave this step out",
            Errno::INVAL | Errno::RANGE => "the driver does not accept this value; leave this step out",
            _ => "try again, or leave this step out",
        };
        EthtoolError::Refused { errno, advice: format!("{said}; {next}") }
    }
}

/// Kernels without the family or the request, and sandboxes that hide netlink.
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

/// A request for one feature: a bitset with one named bit. A bit without the value flag means off.
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
