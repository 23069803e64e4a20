//! Changing an interface: queues, coalescing, features. Netlink goes first, and tells why a driver refuses; the ioctl is
//! for kernels whose netlink does not take the request (channels and features came with 5.7 and 5.8).

use super::{
    decode, ioctl,
    message::{NESTED, attribute, u32_at},
    netlink::{Connection, Refusal, Request},
};
use rustix::io::Errno;
use std::fmt;
use thiserror::Error;

/// A number or a switch of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    /// As ethtool calls it.
    name: &'static str,
    /// Its attribute of the netlink messages (linux/ethtool_netlink.h).
    attribute: u16,
    /// Its place in the ioctl's structure, in 32-bit words (linux/ethtool.h).
    word: usize,
    is_switch: bool,
}

const fn number(name: &'static str, attribute: u16, word: usize) -> Field {
    Field { name, attribute, word, is_switch: false }
}

const fn switch(name: &'static str, attribute: u16, word: usize) -> Field {
    Field { name, attribute, word, is_switch: true }
}

const CHANNELS: [Field; 4] =
    [number("rx", 6, 5), number("tx", 7, 6), number("other", 8, 7), number("combined", 9, 8)];
const COALESCING: [Field; 10] = [
    number("rx-usecs", 2, 1),
    number("rx-frames", 3, 2),
    number("rx-usecs-irq", 4, 3),
    number("rx-frames-irq", 5, 4),
    number("tx-usecs", 6, 5),
    number("tx-frames", 7, 6),
    number("tx-usecs-irq", 8, 7),
    number("tx-frames-irq", 9, 8),
    switch("adaptive-rx", 11, 10),
    switch("adaptive-tx", 12, 11),
];

/// One thing of an interface that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Channels(Field),
    Coalescing(Field),
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
    /// Queues: "rx", "tx", "other", "combined" (`ethtool -L`); none for other names.
    pub fn channels(name: &str) -> Option<Self> {
        CHANNELS.iter().find(|field| field.name == name).map(|field| Self(Kind::Channels(*field)))
    }

    /// Interrupt coalescing: "rx-usecs", "adaptive-rx", ... (`ethtool -C`); none for other names.
    pub fn coalescing(name: &str) -> Option<Self> {
        COALESCING.iter().find(|field| field.name == name).map(|field| Self(Kind::Coalescing(*field)))
    }

    /// A feature by the kernel's name: "rx-lro" (`ethtool -K`); none for what can be no name.
    pub fn feature(name: &str) -> Option<Self> {
        // ETH_GSTRING_LEN, with the zero.
        let is_name = !name.is_empty() && name.len() < 32 && name.chars().all(|c| c.is_ascii_graphic());
        is_name.then(|| Self(Kind::Feature(name.to_owned())))
    }

    /// The value that a text means for this setting.
    pub fn value(&self, text: &str) -> Result<Value, EthtoolError> {
        let is_switch = match &self.0 {
            Kind::Channels(field) | Kind::Coalescing(field) => field.is_switch,
            Kind::Feature(_) => true,
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
        let found = match &self.0 {
            Kind::Channels(field) => field.get(interface, Request::Channels, &ioctl::CHANNELS),
            Kind::Coalescing(field) => field.get(interface, Request::Coalescing, &ioctl::COALESCING),
            Kind::Feature(name) => feature(interface, name),
        };
        match found {
            Ok(found) => Ok(found),
            Err(Errno::NODEV | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(EthtoolError::Refused { errno, advice: String::new() }),
        }
    }

    /// Sets it. A change of queues can take the link down for a moment.
    pub fn set(&self, interface: &str, to: Value) -> Result<(), EthtoolError> {
        let attributes = match &self.0 {
            Kind::Channels(field) | Kind::Coalescing(field) => field.attribute(to),
            Kind::Feature(name) => wanted(name, to),
        };
        let request = match &self.0 {
            Kind::Channels(_) => Request::SetChannels,
            Kind::Coalescing(_) => Request::SetCoalescing,
            Kind::Feature(_) => Request::SetFeatures,
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
        match (&self.0, self.get(interface)?) {
            (Kind::Feature(_), Some(found)) if found != to => Err(EthtoolError::Ineffective { found }),
            _ => Ok(()),
        }
    }

    fn set_by_ioctl(&self, interface: &str, to: Value) -> Result<(), Errno> {
        let set = |structure, field: &Field| ioctl::set_word(interface, structure, field.word, to.raw());
        match &self.0 {
            Kind::Channels(field) => set(&ioctl::CHANNELS, field),
            Kind::Coalescing(field) => set(&ioctl::COALESCING, field),
            Kind::Feature(name) => ioctl::set_feature(interface, name, to == Value::Switch(true)),
        }
    }

    /// The error with the driver's words and the next step.
    fn error(&self, interface: &str, refusal: &Refusal) -> EthtoolError {
        let errno = refusal.errno;
        let said = if refusal.text.is_empty() { String::new() } else { format!(" ({:?})", refusal.text) };
        let is_adaptive = |own: &str, switch: &str| {
            let is_own = matches!(&self.0, Kind::Coalescing(field) if field.name.starts_with(own));
            let switch = Self::coalescing(switch).filter(|_| is_own);
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

impl Field {
    /// Switches are bytes, numbers are words.
    fn attribute(self, to: Value) -> Vec<u8> {
        match to {
            Value::Number(number) => attribute(self.attribute, &number.to_ne_bytes()),
            Value::Switch(is_on) => attribute(self.attribute, &[u8::from(is_on)]),
        }
    }

    fn decode(self, answer: &[u8]) -> Option<Value> {
        let value = super::message::Attributes(answer).value_of(self.attribute)?;
        if self.is_switch {
            value.first().map(|byte| Value::Switch(*byte != 0))
        } else {
            u32_at(value, 0).map(Value::Number)
        }
    }

    fn get(
        self,
        interface: &str,
        request: Request,
        structure: &ioctl::Structure,
    ) -> Result<Option<Value>, Errno> {
        match Connection::open().and_then(|mut connection| connection.ask(interface, request)) {
            Ok(answer) => Ok(self.decode(&answer)),
            Err(errno) if is_without_netlink(errno) => {
                let word = ioctl::word_of(interface, structure, self.word)?;
                Ok(Some(if self.is_switch { Value::Switch(word != 0) } else { Value::Number(word) }))
            }
            Err(errno) => Err(errno),
        }
    }
}

fn feature(interface: &str, name: &str) -> Result<Option<Value>, Errno> {
    let features =
        match Connection::open().and_then(|mut connection| connection.ask(interface, Request::Features)) {
            Ok(answer) => decode::features(&answer),
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
