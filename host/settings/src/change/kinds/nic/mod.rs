//! Parameters of network interfaces. Each kind is a [`NicKind`]: data in `table.rs`, registered in [`KINDS`].

mod table;

pub use table::{
    CHANNELS, COALESCING, EEE, FEATURE, FEC, NAPI, ONLOAD, PAUSE, RINGS, RPS, RSS, XPS, equal_queues,
};

use crate::change::{
    Kind, KindFacts, Mechanism, MissingValue, Part, Rival, Target,
    grammar::{Grammar, INTERFACE, WORD},
    kind::{Ethtool, list, put_list},
};
use lowlat_host::{
    HostSnapshot, Reading,
    snapshot::{Nic, QueueMask},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{cmp::Ordering, fmt};

/// All kinds of changes to an interface.
pub const KINDS: &[&NicKind] =
    &[&CHANNELS, &COALESCING, &EEE, &FEATURE, &FEC, &NAPI, &ONLOAD, &PAUSE, &RINGS, &RPS, &RSS, &XPS];

/// A kind of change to an interface, such as its ring sizes.
pub struct NicKind {
    /// The kind's name in plans: "nic_channels".
    pub tag: &'static str,
    /// Text after the parameter's name in reports: " queues"; empty if the name is enough.
    pub noun: &'static str,
    /// Types of the parameter's name and value.
    pub(crate) grammar: [&'static Grammar; 2],
    /// Reads a parameter; absent if the interface lacks it.
    pub get: fn(&Nic, &str) -> Reading<String>,
    /// Sets a parameter in a snapshot.
    pub put: fn(&mut Nic, &str, &str),
    pub by: By,
    pub part: Part,
    /// The option of TuneD's `[net]` plugin that sets it too; empty if there is none.
    pub tuned: &'static str,
}

/// The mechanism that sets a parameter.
#[derive(Debug)]
pub enum By {
    Ethtool(Ethtool),
    /// A file of a queue of the interface with a CPU mask: "rps_cpus". The parameter is the queue.
    QueueMask(&'static str),
}

impl NicKind {
    /// What most kinds have: no noun, no option of TuneD.
    const BLANK: Self = Self {
        tag: "",
        noun: "",
        grammar: [&WORD, &WORD],
        get: |_, _| Reading::Absent,
        put: |_, _, _| {},
        by: By::QueueMask(""),
        part: Part::RunTime,
        tuned: "",
    };

    /// A parameter of an interface as the target of a change.
    pub fn of(&'static self, nic: impl Into<String>, name: impl Into<String>) -> Target {
        Target::Nic(NicTarget { kind: self, nic: nic.into(), name: name.into() })
    }

    /// The group of parameters that `ethtool` sets, if any.
    pub fn ethtool(&self) -> Option<&Ethtool> {
        match &self.by {
            By::Ethtool(group) => Some(group),
            By::QueueMask(_) => None,
        }
    }
}

/// One parameter of an interface. The order of its fields is permanent: a plan's id is the digest of its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NicTarget {
    #[serde(deserialize_with = "kind_of_tag")]
    pub kind: &'static NicKind,
    pub nic: String,
    /// Name of the parameter: "combined", "rx-lro", "rx-0".
    #[serde(rename = "field")]
    pub name: String,
}

impl NicTarget {
    fn found<'a>(&self, host: &'a HostSnapshot) -> Option<&'a Nic> {
        host.nics.iter().find(|nic| nic.name == self.nic)
    }
}

impl Kind for &NicTarget {
    fn facts(&self) -> KindFacts<'_> {
        let NicTarget { kind, nic, name } = self;
        let mechanism = match &kind.by {
            By::Ethtool(group) => Mechanism::Ethtool { nic, group, name },
            By::QueueMask(file) => {
                Mechanism::Mask { path: format!("/sys/class/net/{nic}/queues/{name}/{file}") }
            }
        };
        let rival = Rival::TunedNet { nic: nic.clone(), option: kind.tuned, name: name.clone() };
        let [name_of, value] = kind.grammar;
        KindFacts {
            part: kind.part,
            rivals: if kind.tuned.is_empty() { Vec::new() } else { vec![rival] },
            how_to_find: format!(
                "check NetworkManager (`nmcli -f ethtool connection show`), .link files in /etc/systemd/network, udev \
                 rules, and vendor scripts for {nic}"
            ),
            ..KindFacts::of(
                format!("{nic} {name}{}", kind.noun),
                mechanism,
                &[(&INTERFACE, nic), (name_of, name)],
                value,
            )
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        self.found(host).map_or(Reading::Absent, |nic| (self.kind.get)(nic, &self.name))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        for nic in host.nics.iter_mut().filter(|nic| nic.name == self.nic) {
            (self.kind.put)(nic, &self.name, value);
        }
    }

    fn missing(&self, host: &HostSnapshot) -> MissingValue {
        if self.found(host).is_none() {
            let name = &self.nic;
            return MissingValue::Unreadable(Some(format!(
                "absent: interface {name} does not exist; check whether it was renamed or its driver is not loaded"
            )));
        }
        match self.kind.by {
            By::Ethtool(_) => MissingValue::Unreadable(None),
            By::QueueMask(_) => MissingValue::Gone("the interface does not have this queue"),
        }
    }
}

/// The text of a switch in plans.
fn on_off(is_on: bool) -> String {
    if is_on { "on".to_owned() } else { "off".to_owned() }
}

fn text_of_mask(queues: &[QueueMask], name: &str) -> Reading<String> {
    let found = queues.iter().find(|mask| mask.queue == name);
    found.map_or(Reading::Absent, |mask| list(&mask.cpus))
}

fn put_mask(queues: &mut [QueueMask], name: &str, value: &str) {
    for mask in queues.iter_mut().filter(|mask| mask.queue == name) {
        put_list(&mut mask.cpus, value);
    }
}

// Kinds are compared by their tags: functions have no order and no equality.

impl PartialEq for NicKind {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag
    }
}

impl Eq for NicKind {}

impl PartialOrd for NicKind {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NicKind {
    fn cmp(&self, other: &Self) -> Ordering {
        self.tag.cmp(other.tag)
    }
}

impl fmt::Debug for NicKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.tag)
    }
}

impl Serialize for NicKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.tag)
    }
}

fn kind_of_tag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static NicKind, D::Error> {
    let tag = String::deserialize(deserializer)?;
    let kind = KINDS.iter().find(|kind| kind.tag == tag).copied();
    kind.ok_or_else(|| D::Error::custom(format!("unknown kind of change {tag:?}")))
}
