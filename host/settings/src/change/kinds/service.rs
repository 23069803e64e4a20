//! What systemd and TuneD control.

use crate::change::{
    Kind, KindFacts, Mechanism, Part,
    grammar::{CPU_LIST, POLICY, UNIT, UNIT_STATE},
    kind::list,
};
use lowlat_host::{CpuSet, HostSnapshot, Reading, snapshot::CpusetPartition as Partition};

/// Run state and enablement of a systemd unit: "active, enabled".
pub(super) struct Service<'a> {
    pub(super) unit: &'a str,
}

impl Kind for Service<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let unit = self.unit;
        KindFacts {
            how_to_find: format!(
                "to find the cause: `journalctl -u {unit}` and `systemctl list-dependencies --reverse {unit}`"
            ),
            ..KindFacts::of(unit, Mechanism::Unit { name: unit }, &[(&UNIT, unit)], &UNIT_STATE)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let unit = host.services.units.get(self.unit);
        unit.map_or(Reading::Absent, |unit| {
            unit.active.clone().map(|active| match unit.enablement.text() {
                "" => active,
                enablement => format!("{active}, {enablement}"),
            })
        })
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let Some(unit) = host.services.units.get_mut(self.unit) else { return };
        let (active, enablement) = value.split_once(", ").unwrap_or((value, ""));
        unit.active = Reading::Known(active.to_owned());
        if !enablement.is_empty() {
            unit.enablement = Reading::Known(enablement.to_owned());
        }
    }

    /// Compares the run state only: a stopped unit may be enabled again.
    fn revert(&self, host: &mut HostSnapshot, before: &str, after: &str) {
        let unit = host.services.units.get(self.unit);
        if unit.is_some_and(|unit| after.starts_with(unit.active.text())) {
            self.put(host, before);
        }
    }
}

/// The value if no partition exists.
const NONE: &str = "none";

/// The CPUs of an isolated cpuset partition, as a CPU list, or "none".
pub(super) struct PartitionCpus<'a> {
    pub(super) slice: &'a str,
}

impl PartitionCpus<'_> {
    fn group(&self) -> String {
        format!("/{}", self.slice)
    }

    fn find<'h>(&self, host: &'h HostSnapshot) -> Option<&'h Partition> {
        let group = self.group();
        host.services.cpuset_partitions.iter().find(|partition| partition.group == group)
    }
}

impl Kind for PartitionCpus<'_> {
    fn facts(&self) -> KindFacts<'_> {
        let slice = self.slice;
        KindFacts {
            how_to_find: format!(
                "to find the cause: `systemctl status {slice}`, and other groups below /sys/fs/cgroup whose cpuset.cpus names \
                 these CPUs"
            ),
            ..KindFacts::of(
                format!("isolated partition {slice}"),
                Mechanism::CpusetPartition { slice },
                &[(&UNIT, slice)],
                &CPU_LIST,
            )
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        match self.find(host) {
            None => Reading::Known(NONE.to_owned()),
            Some(partition) if partition.is_isolated() => list(&partition.cpus),
            Some(partition) => Reading::Known(partition.state.clone()),
        }
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let group = self.group();
        host.services.cpuset_partitions.retain(|partition| partition.group != group);
        if let Ok(cpus) = CpuSet::parse_list(value) {
            let (state, cpus) = ("isolated".to_owned(), Reading::Known(cpus));
            host.services.cpuset_partitions.push(Partition { group, state, cpus });
        }
    }

    /// The kernel keeps a partition that it cannot form, and adds the reason to its state.
    fn without_effect(&self, host: &HostSnapshot, _observed: &str, _after: &str) -> Option<String> {
        let partition = self.find(host).filter(|partition| !partition.is_isolated())?;
        Some(format!("the kernel does not isolate the CPUs: {}", partition.state))
    }
}

/// TuneD's active profile and its mode: "lowlat manual".
pub(super) struct TunedProfileKind;

impl Kind for TunedProfileKind {
    fn facts(&self) -> KindFacts<'_> {
        KindFacts {
            title: "TuneD's profile".to_owned(),
            part: Part::Tuned,
            how_to_find: "to find the cause: `journalctl -u tuned` shows when the profile was switched"
                .to_owned(),
            ..KindFacts::of("TuneD's profile and mode", Mechanism::TunedProfile, &[], &POLICY)
        }
    }
}
