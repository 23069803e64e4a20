//! Pages reserved in the pool of one node, or of the host.

use crate::change::{Kind, KindFacts, Mechanism, Rival, grammar::NUMBER};
use lowlat_host::{HostSnapshot, Reading};

pub(super) struct HugePages {
    pub(super) node: Option<u32>,
    pub(super) size_bytes: u64,
}

impl Kind for HugePages {
    fn facts(&self) -> KindFacts<'_> {
        let (place, above) = match self.node {
            Some(node) => (format!("node {node}"), format!("/sys/devices/system/node/node{node}")),
            None => ("host".to_owned(), "/sys/kernel/mm".to_owned()),
        };
        let size_kib = self.size_bytes >> 10;
        // The host's pool of a page size: /proc/sys/vm/nr_hugepages covers the default size only.
        let path = format!("{above}/hugepages/hugepages-{size_kib}kB/nr_hugepages");
        let name = format!("huge pages of {size_kib} KiB, {place}");
        KindFacts {
            rivals: vec![Rival::Sysctl("vm.nr_hugepages".to_owned())],
            ..KindFacts::of(name, Mechanism::Value { path }, &[], &NUMBER)
        }
    }

    fn present(&self, host: &HostSnapshot) -> Reading<String> {
        let mut pools = host.memory.huge_pages.iter();
        let pool = pools.find(|pool| pool.node == self.node && pool.size_bytes == self.size_bytes);
        pool.map_or(Reading::Absent, |pool| pool.total.as_ref().map(u64::to_string))
    }

    fn put(&self, host: &mut HostSnapshot, value: &str) {
        let pools = host.memory.huge_pages.iter_mut();
        for pool in pools.filter(|pool| pool.node == self.node && pool.size_bytes == self.size_bytes) {
            if let Ok(total) = value.trim().parse() {
                pool.total = Reading::Known(total);
            }
        }
    }

    /// The kernel reserves fewer pages than requested if memory is fragmented.
    fn without_effect(&self, _host: &HostSnapshot, observed: &str, after: &str) -> Option<String> {
        let (observed, after): (u64, u64) = (observed.parse().ok()?, after.trim().parse().ok()?);
        (observed < after).then(|| {
            "the kernel found no more contiguous memory; reserve the pages at boot with hugepages=, or right after \
             it".to_owned()
        })
    }
}
