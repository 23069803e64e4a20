//! Limits of this process's control groups (cgroup-v2.rst, and memory.rst of version 1).

use lowlat_host::Reading;
use lowlat_host_run::{
    Root,
    control_group::{self, OwnGroups},
};
use lowlat_pipeline::check::GroupLimits;

/// Reads the limits of the group and all groups above it.
pub fn read(root: &Root) -> GroupLimits {
    let cpus = OwnGroups::of(root, "cpu").and_then(|groups| {
        groups.least(|folder| {
            if groups.is_version_1 {
                let [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
                    .map(|name| root.read(&format!("{folder}/{name}")));
                let quota = quota.and_then(|quota| period.map(|period| format!("{} {period}", quota.trim())));
                return quota.and_then(|text| share(&text, format!("{folder}/cpu.cfs_quota_us")));
            }
            root.read(&format!("{folder}/cpu.max")).and_then(|text| share(&text, format!("{folder}/cpu.max")))
        })
    });
    GroupLimits { memory_left_bytes: control_group::memory_left_bytes(root), cpus }
}

/// The CPU time of "QUOTA PERIOD", in CPUs; the inner one is none without a quota.
fn share(text: &str, path: String) -> Reading<Option<f64>> {
    let found = text.split_once(' ').and_then(|(quota, period)| match quota {
        "max" | "-1" => Some(None),
        quota => Some(Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)),
    });
    Reading::understood(found, path, text, "a quota and a period in us")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(files: &[(&str, &str)]) -> GroupLimits {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        read(&Root::in_memory("test", files))
    }

    #[test]
    fn the_narrowest_group_counts() {
        let of = limits(&[
            ("/proc/self/cgroup", "0::/desk/run\n"),
            ("/sys/fs/cgroup/desk/memory.max", "1000\n"),
            ("/sys/fs/cgroup/desk/memory.current", "700\n"),
            ("/sys/fs/cgroup/desk/memory.stat", "file 300\ninactive_file 200\n"),
            ("/sys/fs/cgroup/desk/run/memory.max", "max\n"),
            ("/sys/fs/cgroup/desk/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/desk/run/cpu.max", "150000 100000\n"),
        ]);
        assert_eq!(of.memory_left_bytes, Reading::Known(Some(500)));
        assert_eq!(of.cpus, Reading::Known(Some(1.5)));
    }

    #[test]
    fn version_1_has_its_own_names() {
        let of = limits(&[
            ("/proc/self/cgroup", "9:memory:/docker/7\n4:cpu,cpuacct:/docker/7\n0::/x\n"),
            ("/sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes", "2000\n"),
            ("/sys/fs/cgroup/memory/docker/7/memory.usage_in_bytes", "1500\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/cpu/docker/7/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/docker/7/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!((of.memory_left_bytes, of.cpus), (Reading::Known(Some(500)), Reading::Known(None)));
    }

    #[test]
    fn absent_unparsable_and_unlimited_are_distinct() {
        let of = limits(&[]);
        assert!(of.memory_left_bytes.is_absent() && of.cpus.is_absent());
        let of = limits(&[("/proc/self/cgroup", "0::/\n")]);
        assert_eq!((of.memory_left_bytes, of.cpus), (Reading::Known(None), Reading::Known(None)));
        let of = limits(&[("/proc/self/cgroup", "0::/a\n"), ("/sys/fs/cgroup/a/memory.max", "much\n")]);
        assert!(matches!(of.memory_left_bytes, Reading::Unparsable(_)));
    }
}
