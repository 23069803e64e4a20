//! NAPI instances, their queues, and XDP abilities: the family `netdev` of generic netlink, since 6.6. Numbers are
//! those of the kernel's Documentation/netlink/specs/netdev.yaml.

use super::ethtool::{Value, reading};
use crate::netlink::{
    Connection, Family, Refusal,
    message::{Attributes, attribute, u32_at},
};
use lowlat_host::{
    Reading,
    snapshot::{Napi, NapiField},
};
use rustix::{
    io::Errno,
    net::{
        AddressFamily, SocketFlags, SocketType,
        netdevice::{index_to_name, name_to_index},
        socket_with,
    },
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const DEV_GET: u8 = 1;
const QUEUE_GET: u8 = 10;
const NAPI_GET: u8 = 11;
const NAPI_SET: u8 = 14;

/// Attributes that name the interface.
const DEV_IFINDEX: u16 = 1;
const QUEUE_IFINDEX: u16 = 2;
const NAPI_IFINDEX: u16 = 1;

const NAPI_ID: u16 = 2;
const NAPI_THREADED: u16 = 8;

/// Names of the bits of `xdp-act`.
const XDP: [&str; 7] =
    ["basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg"];

/// Values of `napi-threaded`, from 0.
pub(super) const THREADED: [&str; 3] = ["disabled", "enabled", "busy-poll"];

/// All answers for one interface, in the format that captures keep.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NapiAnswers {
    pub(super) napis: Reading<Vec<Napi>>,
    pub(super) xdp_features: Reading<Vec<String>>,
}

pub(super) fn ask(interface: &str) -> NapiAnswers {
    NapiAnswers { napis: reading(napis(interface)), xdp_features: reading(xdp_features(interface)) }
}

fn index_of(interface: &str) -> Result<u32, Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    name_to_index(socket, interface)
}

fn with_index(kind: u16, interface: &str) -> Result<Vec<u8>, Errno> {
    Ok(attribute(kind, &index_of(interface)?.to_ne_bytes()))
}

fn xdp_features(interface: &str) -> Result<Vec<String>, Errno> {
    const FEATURES: u16 = 3;
    let request = with_index(DEV_IFINDEX, interface)?;
    let answer = Connection::open(Family::Netdev)?.ask(DEV_GET, &request)?;
    let bits = number(&answer, FEATURES).unwrap_or(0);
    let is_set = |at: &usize| bits & (1 << at) != 0;
    Ok((0..XDP.len()).filter(is_set).filter_map(|at| XDP.get(at)).map(|&name| name.to_owned()).collect())
}

fn napis(interface: &str) -> Result<Vec<Napi>, Errno> {
    let request = with_index(NAPI_IFINDEX, interface)?;
    let answers = Connection::open(Family::Netdev)?.list(NAPI_GET, &request)?;
    let mut queues = queues_by_napi(interface)?;
    let mut napis: Vec<Napi> = answers.iter().filter_map(|answer| napi(answer)).collect();
    napis.sort_by_key(|napi| napi.napi_id);
    for (at, napi) in napis.iter_mut().enumerate() {
        napi.queues = queues.remove(&napi.napi_id).unwrap_or_default();
        let rx = napi.queues.iter().find(|queue| queue.starts_with("rx-"));
        napi.name = rx.or(napi.queues.first()).cloned().unwrap_or_else(|| format!("napi-{at}"));
    }
    Ok(napis)
}

/// One NAPI instance, as a socket names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NapiInstance {
    pub interface: String,
    /// Time for which its interrupt stays off while an application busy-polls; `None` before Linux 6.13.
    pub irq_suspend_timeout_ns: Option<u64>,
}

/// Reads the NAPI instance with an id (SO_INCOMING_NAPI_ID) in this thread's network namespace.
pub fn napi_instance(id: u32) -> Reading<NapiInstance> {
    let ask = || {
        let answer =
            Connection::open(Family::Netdev)?.ask(NAPI_GET, &attribute(NAPI_ID, &id.to_ne_bytes()))?;
        let index = Attributes(&answer).value_of(NAPI_IFINDEX).and_then(|value| u32_at(value, 0));
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(NapiInstance {
            interface: index_to_name(socket, index.ok_or(Errno::BADMSG)?)?,
            irq_suspend_timeout_ns: number(&answer, attribute_of(NapiField::IrqSuspendTimeout)),
        })
    };
    reading(ask())
}

/// The queues of an interface by the id of the NAPI instance that polls them. A queue of an interface that is down has
/// none.
fn queues_by_napi(interface: &str) -> Result<BTreeMap<u32, Vec<String>>, Errno> {
    let request = with_index(QUEUE_IFINDEX, interface)?;
    let mut queues: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for answer in Connection::open(Family::Netdev)?.list(QUEUE_GET, &request)? {
        if let Some((napi, queue)) = queue(&answer) {
            queues.entry(napi).or_default().push(queue);
        }
    }
    Ok(queues)
}

fn queue(answer: &[u8]) -> Option<(u32, String)> {
    const ID: u16 = 1;
    const TYPE: u16 = 3;
    const NAPI: u16 = 4;
    let word = |kind| u32_at(Attributes(answer).value_of(kind)?, 0);
    let direction = match word(TYPE)? {
        0 => "rx",
        1 => "tx",
        _ => return None,
    };
    Some((word(NAPI)?, format!("{direction}-{}", word(ID)?)))
}

fn napi(answer: &[u8]) -> Option<Napi> {
    const IRQ: u16 = 3;
    const PID: u16 = 4;
    let word = |kind| u32_at(Attributes(answer).value_of(kind)?, 0);
    Some(Napi {
        napi_id: word(NAPI_ID)?,
        irq: word(IRQ),
        defer_hard_irqs: word(attribute_of(NapiField::DeferHardIrqs)),
        gro_flush_timeout_ns: number(answer, attribute_of(NapiField::GroFlushTimeout)),
        irq_suspend_timeout_ns: number(answer, attribute_of(NapiField::IrqSuspendTimeout)),
        threaded: word(NAPI_THREADED).and_then(threaded),
        pid: word(PID),
        ..Napi::default()
    })
}

fn threaded(raw: u32) -> Option<String> {
    THREADED.get(usize::try_from(raw).ok()?).map(|&word| word.to_owned())
}

/// A number of four or eight bytes.
fn number(answer: &[u8], kind: u16) -> Option<u64> {
    let value = Attributes(answer).value_of(kind)?;
    match value.first_chunk() {
        Some(bytes) => Some(u64::from_ne_bytes(*bytes)),
        None => u32_at(value, 0).map(u64::from),
    }
}

fn attribute_of(field: NapiField) -> u16 {
    match field {
        NapiField::DeferHardIrqs => 5,
        NapiField::GroFlushTimeout => 6,
        NapiField::IrqSuspendTimeout => 7,
        NapiField::Threaded => NAPI_THREADED,
    }
}

/// A value of one NAPI instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NapiParameter {
    /// The instance's [`Napi::name`].
    napi: String,
    field: NapiField,
}

impl NapiParameter {
    /// Parses a name such as "rx-0/gro-flush-timeout".
    pub(super) fn parse(name: &str) -> Option<Self> {
        let (napi, field) = NapiField::split(name)?;
        Some(Self { napi: napi.to_owned(), field })
    }

    pub(super) fn is_threaded(&self) -> bool {
        self.field == NapiField::Threaded
    }

    /// The instance; `EOPNOTSUPP` if the interface has none of this name now.
    fn found(&self, interface: &str) -> Result<Napi, Errno> {
        let napis = napis(interface).map_err(|errno| match errno {
            // A kernel before 6.6, or a sandbox.
            Errno::NOENT | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => Errno::OPNOTSUPP,
            other => other,
        })?;
        napis.into_iter().find(|napi| napi.name == self.napi).ok_or(Errno::OPNOTSUPP)
    }

    pub(super) fn get(&self, interface: &str) -> Result<Option<Value>, Errno> {
        let value = self.found(interface)?.value(self.field);
        Ok(value.map(|value| match value.parse() {
            Ok(number) => Value::Number(number),
            Err(_) => Value::Text(value),
        }))
    }

    pub(super) fn set(&self, interface: &str, to: &Value) -> Result<(), Refusal> {
        let id = attribute(NAPI_ID, &self.found(interface)?.napi_id.to_ne_bytes());
        let raw = match to {
            Value::Number(number) => Some(*number),
            Value::Switch(_) => None,
            Value::Text(word) => {
                THREADED.iter().position(|known| known == word).and_then(|at| u64::try_from(at).ok())
            }
        };
        let raw = raw.ok_or(Errno::RANGE)?;
        let value = match self.field {
            // A u32 by the kernel's policy; the others are of either size.
            NapiField::DeferHardIrqs | NapiField::Threaded => {
                let raw = u32::try_from(raw).map_err(|_| Errno::RANGE)?;
                attribute(attribute_of(self.field), &raw.to_ne_bytes())
            }
            NapiField::GroFlushTimeout | NapiField::IrqSuspendTimeout => {
                attribute(attribute_of(self.field), &raw.to_ne_bytes())
            }
        };
        Connection::open(Family::Netdev)?.set(NAPI_SET, &[id, value].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_decoded() {
        let word = |kind: u16, value: u32| attribute(kind, &value.to_ne_bytes());
        let answer = [word(1, 3), word(2, 8193), word(3, 45), word(5, 100), word(6, 20_000)].concat();
        let long = attribute(7, &20_000_000_u64.to_ne_bytes());
        let found = napi(&[answer, long, word(8, 2)].concat()).unwrap();
        assert_eq!((found.napi_id, found.irq, found.defer_hard_irqs), (8193, Some(45), Some(100)));
        assert_eq!(found.gro_flush_timeout_ns, Some(20_000));
        assert_eq!(found.irq_suspend_timeout_ns, Some(20_000_000));
        assert_eq!((found.threaded.as_deref(), found.pid), (Some("busy-poll"), None));
        assert!(napi(&word(3, 45)).is_none());
        let tx = [word(1, 4), word(2, 3), word(3, 1), word(4, 8193)].concat();
        assert_eq!(queue(&tx), Some((8193, "tx-4".to_owned())));
        assert_eq!(queue(&word(1, 4)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..80)) {
            let _ = (napi(&bytes), queue(&bytes), number(&bytes, 3));
        }
    }
}
