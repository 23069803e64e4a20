//! Limits of this process's control groups (cgroup-v2.rst, and memory.rst of version 1).

use lowlat_host::Reading;
use lowlat_pipeline::check::GroupLimits;
use lowlat_sys::Root;

const MOUNT: &str = "/sys/fs/cgroup";
/// Version 1 has a limit of this size where there is none: the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// Reads the limits of the group and all groups above it.
pub fn read(root: &Root) -> GroupLimits {
    let groups = root.read("/proc/self/cgroup");
    GroupLimits {
        memory_left_bytes: groups.as_ref().and_then(|text| memory(root, text)),
        cpus: groups.as_ref().and_then(|text| cpus(root, text)),
    }
}

/// The least memory that any group leaves; the inner one is none without a limit.
fn memory(root: &Root, groups: &str) -> Reading<Option<u64>> {
    let (mount, files, group) = match of_version_1(groups, "memory") {
        Some(group) => (
            format!("{MOUNT}/memory"),
            ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"],
            Some(group),
        ),
        None => (MOUNT.to_owned(), ["memory.max", "memory.current", "inactive_file"], of_version_2(groups)),
    };
    least(&mount, group, |folder| {
        let [limit, usage, reclaimable] = files;
        let limit = match root.read(&format!("{folder}/{limit}")) {
            Reading::Known(text) if text.trim() == "max" => return Reading::Known(None),
            read => number(read, &format!("{folder}/{limit}")),
        };
        limit.and_then(|limit| {
            if limit >= NO_LIMIT_BYTES {
                return Reading::Known(None);
            }
            let used = number(root.read(&format!("{folder}/{usage}")), &format!("{folder}/{usage}"));
            // Pages of files that the kernel drops before it kills; unknown counts as none.
            let stat = root.read(&format!("{folder}/memory.stat"));
            let line = stat.known().and_then(|text| {
                text.lines().find_map(|line| line.strip_prefix(reclaimable)?.trim().parse::<u64>().ok())
            });
            used.map(|used| Some(limit.saturating_sub(used.saturating_sub(line.unwrap_or(0)))))
        })
    })
}

/// The least CPU time that any group allows, in CPUs; the inner one is none without a quota.
fn cpus(root: &Root, groups: &str) -> Reading<Option<f64>> {
    let share = |quota: &str, period: &str| -> Option<Option<f64>> {
        if quota.trim() == "max" || quota.trim() == "-1" {
            return Some(None);
        }
        Some(Some(quota.trim().parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?))
    };
    if let Some(group) = of_version_1(groups, "cpu") {
        return least(&format!("{MOUNT}/cpu"), Some(group), |folder| {
            let [quota, period] =
                ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|name| root.read(&format!("{folder}/{name}")));
            quota.and_then(|quota| {
                period.and_then(|period| {
                    share(&quota, &period).map_or_else(
                        || Reading::unparsable(format!("{folder}/cpu.cfs_quota_us"), &quota, "a quota in us"),
                        Reading::Known,
                    )
                })
            })
        });
    }
    least(MOUNT, of_version_2(groups), |folder| {
        root.read(&format!("{folder}/cpu.max")).and_then(|text| {
            text.split_once(' ').and_then(|(quota, period)| share(quota, period)).map_or_else(
                || Reading::unparsable(format!("{folder}/cpu.max"), &text, "a quota and a period in us"),
                Reading::Known,
            )
        })
    })
}

/// The least of a group and those above it. The root group has no limits; a group without the file has none of its own.
fn least<T: PartialOrd + Copy>(
    mount: &str,
    group: Option<&str>,
    limit: impl Fn(&str) -> Reading<Option<T>>,
) -> Reading<Option<T>> {
    let Some(group) = group else { return Reading::Absent };
    let mut least = None;
    let mut rest = group.trim_end_matches('/');
    loop {
        match limit(&format!("{mount}{rest}")) {
            Reading::Known(Some(found)) => {
                if least.is_none_or(|least| found < least) {
                    least = Some(found);
                }
            }
            Reading::Known(None) | Reading::Absent => {}
            other => return other,
        }
        let Some((above, _)) = rest.rsplit_once('/') else { return Reading::Known(least) };
        rest = above;
    }
}

fn number(read: Reading<String>, path: &str) -> Reading<u64> {
    read.and_then(|text| match text.trim().parse() {
        Ok(number) => Reading::Known(number),
        Err(_) => Reading::unparsable(path, &text, "a number of bytes"),
    })
}

/// The group of a controller of version 1: "4:memory:/a/b".
fn of_version_1<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|found| found == controller).then_some(group)
    })
}

/// The group of version 2: "0::/a/b".
fn of_version_2(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
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
