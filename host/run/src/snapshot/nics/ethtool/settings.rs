//! Changes an interface: sends the parameters in the groups of `lowlat-settings` to the kernel. Netlink is
//! used first, because it explains a driver's errors. The ioctl is for kernels whose netlink does not support
//! the request (channels and features came with 5.7 and 5.8).

mod feature;
mod fec;
mod field;
mod indirection;

use super::super::onload;
use super::napi;
use crate::Root;
use crate::netlink::{Connection, Family, Refusal};
use lowlat_host::Reading;
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
    /// Encodings of forward error correction.
    Fec,
    /// The indirection table of receive side scaling.
    Indirection,
    /// A value of the NAPI instance that polls a queue.
    Napi(napi::NapiParameter),
    /// Queues registered with Onload.
    Onload,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A count of queues or frames, microseconds, or nanoseconds.
    Number(u64),
    Switch(bool),
    /// Words, or numbers with commas between.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Switch(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Error of reading or changing a setting.
#[derive(Debug, Error)]
pub enum EthtoolError {
    /// The kernel or the driver rejected it.
    /// - `advice`: the driver's explanation, and what to do.
    #[error("{errno}{}", .advice)]
    Refused { errno: Errno, advice: String },
    /// It was accepted but had no effect.
    #[error(
        "the driver accepted the change but left the value {found}: the feature is fixed, or another one \
         controls it (ethtool -k shows both); leave this step out"
    )]
    Ineffective { found: Value },
    /// The setting cannot have this value.
    #[error("found {found:?}, expected {expected}")]
    Value { found: String, expected: &'static str },
}

impl EthtoolError {
    /// True if the driver rejected this value permanently, as opposed to a missing permission or a missing answer.
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
            Wire::Fec => (name == fec::NAME).then_some(Parameter::Fec)?,
            Wire::Indirection => (name == indirection::NAME).then_some(Parameter::Indirection)?,
            Wire::Napi => Parameter::Napi(napi::NapiParameter::parse(name)?),
            Wire::Onload => (name == "queues").then_some(Parameter::Onload)?,
        };
        Some(Self { group, parameter })
    }

    /// Parses a value of this setting.
    pub fn value(&self, text: &str) -> Result<Value, EthtoolError> {
        let text = text.trim();
        let on_off = || match text {
            "on" => Some(Value::Switch(true)),
            "off" => Some(Value::Switch(false)),
            _ => None,
        };
        let number = || text.parse().ok().map(Value::Number);
        let (value, expected) = match &self.parameter {
            Parameter::Feature(_) => (on_off(), SWITCH),
            Parameter::Field { field, .. } if field.is_switch => (on_off(), SWITCH),
            Parameter::Field { .. } | Parameter::Onload => {
                (number().filter(|value| value.raw().is_some()), NUMBER)
            }
            Parameter::Fec => (fec::is_valid(text).then(|| Value::Text(text.to_owned())), fec::EXPECTED),
            Parameter::Indirection => (
                number().or_else(|| indirection::is_table(text).then(|| Value::Text(text.to_owned()))),
                indirection::EXPECTED,
            ),
            Parameter::Napi(parameter) if parameter.is_threaded() => {
                let is_mode = napi::THREADED.contains(&text);
                (is_mode.then(|| Value::Text(text.to_owned())), "disabled, enabled or busy-poll")
            }
            Parameter::Napi(_) => (number(), NUMBER),
        };
        value.ok_or_else(|| EthtoolError::Value { found: text.chars().take(80).collect(), expected })
    }

    /// The current value for an interface; `None` if the interface does not exist, or its driver lacks the
    /// setting.
    pub fn get(&self, interface: &str) -> Result<Option<Value>, EthtoolError> {
        let found = match &self.parameter {
            Parameter::Field { get, ioctl, field, .. } => field::get(interface, *get, *ioctl, *field),
            Parameter::Feature(name) => feature::get(interface, name),
            Parameter::Fec => fec::get(interface),
            Parameter::Indirection => indirection::get(interface),
            Parameter::Napi(parameter) => parameter.get(interface),
            Parameter::Onload => match onload::queues(&Root::live(), interface) {
                Reading::Known(queues) => Ok(Some(Value::Number(queues.into()))),
                Reading::Absent => Ok(None),
                Reading::Denied => Err(Errno::ACCESS),
                Reading::Unparsable(_) => Err(Errno::BADMSG),
            },
        };
        match found {
            Ok(found) => Ok(found),
            Err(Errno::NODEV | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(EthtoolError::Refused { errno, advice: String::new() }),
        }
    }

    /// Sets the value. A change of queues can take the link down for a moment.
    pub fn set(&self, interface: &str, to: &Value) -> Result<(), EthtoolError> {
        let set = match &self.parameter {
            Parameter::Field { set, ioctl, field, .. } => field::set(interface, (*set, *ioctl), *field, to),
            Parameter::Feature(name) => feature::set(interface, name, *to == Value::Switch(true)),
            Parameter::Fec => fec::set(interface, &to.to_string()),
            Parameter::Indirection => indirection::set(interface, to).map_err(Refusal::from),
            Parameter::Napi(parameter) => parameter.set(interface, to),
            Parameter::Onload => {
                onload::register(interface, to.raw().unwrap_or_default()).map_err(Refusal::from)
            }
        };
        set.map_err(|refusal| self.error(interface, &refusal))?;
        // A feature that cannot be changed is ignored without an error.
        match (&self.parameter, self.get(interface)?) {
            (Parameter::Feature(_), Some(found)) if found != *to => Err(EthtoolError::Ineffective { found }),
            _ => Ok(()),
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
            Errno::BUSY if self.parameter == Parameter::Onload => {
                "releases of Onload so far keep a registration until their module is unloaded: run `onload_tool reload` \
                 and try again, or reboot"
            }
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

const SWITCH: &str = "\"on\" or \"off\"";
const NUMBER: &str = "a number such as 8";

/// Kernels without the family or the request, and sandboxes that hide netlink.
fn is_without_netlink(errno: Errno) -> bool {
    matches!(errno, Errno::OPNOTSUPP | Errno::NOENT | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT)
}

impl Value {
    /// The value in the 32 bits of a field; `None` if it does not fit.
    fn raw(&self) -> Option<u32> {
        match self {
            Self::Number(number) => u32::try_from(*number).ok(),
            Self::Switch(is_on) => Some(u32::from(*is_on)),
            Self::Text(_) => None,
        }
    }
}

/// Asks a query of the family `ethtool`.
fn ask(interface: &str, request: u8) -> Result<Vec<u8>, Errno> {
    Connection::open(Family::Ethtool)?.ask_about(interface, request)
}

/// Changes by netlink, or by the ioctl where netlink cannot.
fn set_by(
    interface: &str,
    request: u8,
    attributes: &[u8],
    ioctl: impl FnOnce() -> Result<(), Errno>,
) -> Result<(), Refusal> {
    let by_netlink = match Connection::open(Family::Ethtool) {
        Ok(mut connection) => connection.set_of(interface, request, attributes),
        Err(errno) => Err(errno.into()),
    };
    match by_netlink {
        Err(refusal) if is_without_netlink(refusal.errno) => {
            ioctl().map_err(|errno| Refusal { errno, text: refusal.text })
        }
        other => other,
    }
}
