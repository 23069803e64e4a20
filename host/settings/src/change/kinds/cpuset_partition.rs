//! The CPUs of an isolated cpuset partition, as a CPU list, or "none".

use crate::change::{
    Kind, KindFacts, Mechanism,
    grammar::{CPU_LIST, UNIT},
    kind::list,
};
use lowlat_host::{CpuSet, HostSnapshot, Reading, snapshot::CpusetPartition as Partition};

/// The value if no partition exists.
const NONE: &str = "none";

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
