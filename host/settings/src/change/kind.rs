//! The interface of kinds of changes. Each kind implements [`Kind`] in one file of `kinds/`.

use super::{
    BootToken,
    grammar::{Grammar, misfit},
};
use crate::same_meaning;
use lowlat_host::{CpuSet, HostSnapshot, Reading};

/// A kind of change, for one target: its name, its grammar, its value in a snapshot, and the mechanism that applies it.
/// The planner, drift, verification, exports, reports and the code that applies a plan call these functions,
/// so a kind with an existing [`Mechanism`] needs no code elsewhere.
pub trait Kind {
    /// What is fixed for a target. The functions below read it.
    fn facts(&self) -> KindFacts<'_>;

    /// The reason why a name or the new value does not fit its type; none if all fit.
    fn misfit(&self, after: &str) -> Option<String> {
        let KindFacts { misfit_of_names, value, .. } = self.facts();
        misfit_of_names.or_else(|| misfit(&[(value, after)]))
    }

    /// The value in a snapshot, as plans write it; absent if the snapshot has none.
    fn present(&self, _host: &HostSnapshot) -> Reading<String> {
        Reading::Absent
    }

    /// Sets the value in a snapshot. Does nothing if the snapshot cannot contain it.
    fn put(&self, _host: &mut HostSnapshot, _value: &str) {}

    /// True if two values mean the same.
    fn is_same(&self, a: &str, b: &str) -> bool {
        same_meaning(a, b)
    }

    /// Restores `before` in a snapshot that contains the planned value.
    fn revert(&self, host: &mut HostSnapshot, before: &str, after: &str) {
        if self.present(host).known().is_some_and(|now| self.is_same(now, after)) {
            self.put(host, before);
        }
    }

    /// The name by which the target is found after a reboot, if its number changes.
    fn lasting(&self) -> Option<Lasting> {
        None
    }

    /// The meaning of a missing value on this host.
    fn missing(&self, _host: &HostSnapshot) -> MissingValue {
        MissingValue::Unreadable(None)
    }

    /// The reason why the kernel does not follow the value; none if it does.
    fn without_effect(&self, _host: &HostSnapshot, _observed: &str, _after: &str) -> Option<String> {
        None
    }
}

/// What is fixed for a target: each kind fills in what differs from [`KindFacts::of`].
pub struct KindFacts<'a> {
    /// The target, as a plan shows it: "vm.swappiness".
    pub name: String,
    /// The target, as a verification shows it.
    pub title: String,
    /// The part of the target below a heading that names the setting: "ksoftirqd/3".
    pub owner: String,
    /// The text between name and value in a plan.
    pub separator: &'static str,
    /// The reason why a name does not fit its type.
    pub(super) misfit_of_names: Option<String>,
    /// The type of the new value.
    pub(super) value: &'static Grammar,
    /// The mechanism that applies the change.
    pub mechanism: Mechanism<'a>,
    /// The part of a plan that the change belongs to.
    pub part: Part,
    /// The place where other programs set the same value.
    pub rivals: Vec<Rival>,
    /// A hint for finding the source of a value that no known program sets.
    pub how_to_find: String,
}

impl<'a> KindFacts<'a> {
    /// A target with this name, whose names and value have these types.
    pub(super) fn of(
        name: impl Into<String>,
        mechanism: Mechanism<'a>,
        names: &[(&Grammar, &str)],
        value: &'static Grammar,
    ) -> Self {
        let name = name.into();
        Self {
            title: name.clone(),
            owner: name.clone(),
            name,
            separator: ": ",
            misfit_of_names: misfit(names),
            value,
            mechanism,
            part: Part::RunTime,
            rivals: Vec::new(),
            how_to_find: "check scripts in /etc/rc.local, cron, udev rules and units in /etc/systemd/system"
                .to_owned(),
        }
    }
}

/// The mechanisms that apply changes. Each has one implementation in `lowlat-tune-run`, one verification, and
/// one command in exported scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism<'a> {
    BootLoader {
        tokens: &'a [BootToken],
    },
    /// A file of the kernel that contains a value.
    Value {
        path: String,
    },
    /// A file of the kernel that contains a CPU mask; plans contain a CPU list.
    Mask {
        path: String,
    },
    /// A parameter that `ethtool` sets.
    Ethtool {
        nic: &'a str,
        group: &'static Ethtool,
        name: &'a str,
    },
    /// An idle state of some CPUs.
    IdleState {
        name: &'a str,
        cpus: &'a CpuSet,
    },
    /// The affinity of an interrupt.
    /// - `number`: number when the plan was made.
    /// - `actions`: names of the handlers.
    Interrupt {
        number: u32,
        actions: &'a [String],
    },
    /// The affinity of a kernel thread.
    /// - `pid`: process id when the plan was made.
    ThreadAffinity {
        comm: &'a str,
        pid: u32,
    },
    /// The affinity of process 1, and of the processes that have the same one.
    UserProcesses,
    /// The policy and priority of a kernel thread.
    /// - `pid`: process id when the plan was made.
    ThreadScheduling {
        comm: &'a str,
        pid: u32,
    },
    /// `slice`: the systemd slice whose group forms it.
    CpusetPartition {
        slice: &'a str,
    },
    /// `group`: name of the group; "default" is the one of all other CPUs.
    CacheGroup {
        group: &'a str,
    },
    /// `name`: full name, such as "chronyd.service".
    Unit {
        name: &'a str,
    },
    TunedProfile,
    /// One `key=value` line of a file.
    FileKey {
        path: &'a str,
        key: &'a str,
    },
    OwnedFile {
        path: &'a str,
    },
}

/// The parts of a plan, which are prepared and applied one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// TuneD's active profile. It comes after [`Part::Files`], which includes the profile's file, and before
    /// all values of the kernel, because TuneD rolls its old profile back before it applies the new one.
    Tuned,
    /// The default affinity of interrupts, then the number of queues of interfaces. It comes before
    /// [`Part::RunTime`], and the host is read again in between, because a driver that changes its queues
    /// replaces their interrupts.
    Queues,
    /// Changes that take effect at once: values of the kernel, threads, interrupts, interfaces, services. It
    /// includes the enablement of services, which is one target of the undo log together with the run state.
    ///
    /// This part is prepared and applied again at each boot, for changes of the moments
    /// [`Moment::NowAndAtBoot`](super::Moment::NowAndAtBoot) and [`Moment::Now`](super::Moment::Now).
    RunTime,
    /// Files for later boots, except the boot loader's and the enablement of services.
    Files,
    Boot,
}

/// A name that survives a reboot.
#[derive(Debug, Clone)]
pub struct Lasting {
    pub name: String,
    /// Two targets of this name are the same, regardless of their numbers.
    pub is_unique: bool,
    /// True if the host now has a target of this name.
    pub is_on: fn(&HostSnapshot, &str) -> bool,
}

/// The meaning of a missing value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingValue {
    /// It could not be read; with a text if the cause is known.
    Unreadable(Option<String>),
    /// The target no longer exists.
    Gone(&'static str),
}

/// A place where other programs set values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rival {
    /// Files of sysctl.d, and TuneD, by the key.
    Sysctl(String),
    /// Programs and files that write to this file.
    Path(String),
    /// TuneD's `[net]` plugin: the option for the interface, a list of alternating parameters and values.
    /// - `option`: option, such as "channels".
    /// - `name`: parameter, such as "combined".
    TunedNet { nic: String, option: &'static str, name: String },
    /// Programs that move interrupts.
    Interrupts,
    /// Programs and files that give CPUs to all processes.
    Processes,
}

/// A group of parameters that `ethtool` reads and sets together.
#[derive(Debug, PartialEq, Eq)]
pub struct Ethtool {
    /// The kind of target in the undo log.
    pub undo_kind: &'static str,
    /// The option of ethtool(8) that sets them: "-L", "--set-eee". The lower-case letter shows them, or `--show` instead
    /// of `--set`. Empty if ethtool(8) cannot set them.
    pub option: &'static str,
    /// The expected names, for errors.
    pub expected: &'static str,
    pub wire: Wire,
}

/// Encoding of a group of parameters in the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Wire {
    /// One netlink message, or one structure of the older ioctl, with a field for each parameter.
    /// - `get`: number of the request that reads them (linux/ethtool_netlink.h).
    /// - `set`: number of the request that sets them.
    /// - `ioctl`: number of the ioctl that reads them (linux/ethtool.h).
    Fields { get: u8, set: u8, ioctl: u32, fields: &'static [Field] },
    /// The bitset of features, by name.
    Features,
    /// Encodings of forward error correction.
    Fec,
    /// The indirection table of receive side scaling.
    Indirection,
    /// Values of the NAPI instance that polls a queue, through the family `netdev`.
    Napi,
    /// Files of Onload's module.
    Onload,
}

/// The field of one parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Name of the parameter in ethtool(8).
    pub name: &'static str,
    /// Attribute in the netlink messages.
    pub attribute: u16,
    /// Offset in the ioctl's structure, in 32-bit words.
    pub word: usize,
    /// The parameter is "on" or "off".
    pub is_switch: bool,
}

impl Field {
    /// A parameter with a number.
    pub const fn number(name: &'static str, attribute: u16, word: usize) -> Self {
        Self { name, attribute, word, is_switch: false }
    }

    /// A parameter that is on or off.
    pub const fn switch(name: &'static str, attribute: u16, word: usize) -> Self {
        Self { name, attribute, word, is_switch: true }
    }
}

/// The CPU list of a reading, as plans write it.
pub(super) fn list(cpus: &Reading<CpuSet>) -> Reading<String> {
    cpus.as_ref().map(CpuSet::to_list)
}

/// Sets a reading to a CPU list; does nothing if the text is not a list.
pub(super) fn put_list(now: &mut Reading<CpuSet>, text: &str) {
    if let Ok(cpus) = CpuSet::parse_list(text) {
        *now = Reading::Known(cpus);
    }
}

/// A hint for a file whose writers can be recorded.
pub(super) fn watch(path: &str) -> String {
    format!(
        "to find the writer: `auditctl -w {path} -p w -k lowlat`, wait until it happens again, then `ausearch -k \
         lowlat`"
    )
}
